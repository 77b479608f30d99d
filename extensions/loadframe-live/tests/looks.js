// What a reader cannot read on a page: asked of the report and of the live page in a real browser.
() => {
  const shown = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && e.getBoundingClientRect().width > 0;
  const rgb = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const found = rgb(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0.5) return found;
    }
    return rgb(getComputedStyle(document.documentElement).colorScheme === "dark" ? "rgb(0,0,0)" : "rgb(255,255,255)");
  };
  const faults = [];
  // WCAG 2.2, 1.4.3: 4.5 to 1. Names on the boxes of a flame graph lie on fills, which are not looked at here.
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !shown(e) || e.closest(".flame, .difference, script, style, noscript")) continue;
    const style = getComputedStyle(e), drawn = e instanceof SVGElement;
    const on = light(behind(e)), ink = light(rgb(drawn ? style.fill : style.color));
    const ratio = (Math.max(on, ink) + 0.05) / (Math.min(on, ink) + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(1)}: ${e.textContent.trim().slice(0, 40)}`);
  }
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) faults.push("the page is wider than the window");
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.right > wide + 1 && shown(e) && !e.closest(".scroll, .steps, svg, pre")) faults.push(`beyond the window: ${e.tagName} ${e.textContent.trim().slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll("svg")) {
    if (!shown(svg) || svg.closest("[aria-hidden]") || svg.getAttribute("aria-hidden")) continue;
    if (svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")) faults.push(`a picture without words: ${svg.closest("figure")?.id}`);
    if (svg.closest(".flames")) continue;
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const at = text.getBoundingClientRect();
      if (at.width && (at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1)) faults.push(`cut off: ${text.textContent}`);
    }
  }
  for (const a of document.querySelectorAll('a[href^="#"]:not([href^="#/"])')) if (!document.getElementById(a.getAttribute("href").slice(1))) faults.push(`a link to nothing: ${a.getAttribute("href")}`);
  for (const e of document.querySelectorAll("th, td, dd, figcaption, h1, h2, h3, p.answer")) if (/\b(None|NaN|undefined|Infinity|nan)\b/.test(e.textContent)) faults.push(`no value: ${e.textContent.trim().slice(0, 60)}`);
  return [...new Set(faults)];
};
