/* Each figure can be saved as SVG or PNG. Both are made here, from the figure itself: the page fetches nothing. */
const SCALE = 2, SVG = "http://www.w3.org/2000/svg";

function shown(figure) {
  const drawn = Array.from(figure.querySelectorAll("svg"));
  return drawn.find((svg) => svg.getBoundingClientRect().width > 0) || drawn[0];
}

function standalone(svg) {
  const copy = svg.cloneNode(true), box = svg.viewBox.baseVal;
  if (svg.classList.contains("flame")) {
    const styled = svg.querySelectorAll("rect, text"), plain = copy.querySelectorAll("rect, text");
    styled.forEach((part, number) => {
      const style = getComputedStyle(part);
      plain[number].setAttribute("fill", style.fill);
      if (part.tagName === "text") plain[number].setAttribute("style", "font: 11px monospace");
    });
  }
  const paper = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({ x: box.x, y: box.y, width: box.width, height: box.height, fill: "#fff" }))
    paper.setAttribute(name, value);
  copy.insertBefore(paper, copy.firstChild);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const text = new XMLSerializer().serializeToString(copy);
  return { address: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text), width: box.width, height: box.height };
}

function save(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

function savePng(drawn, name) {
  const image = new Image(), canvas = document.createElement("canvas");
  canvas.width = SCALE * drawn.width;
  canvas.height = SCALE * drawn.height;
  image.onload = () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    save(canvas.toDataURL("image/png"), name);
  };
  image.src = drawn.address;
}

for (const place of document.querySelectorAll(".save")) {
  const figure = place.closest("figure"), name = place.dataset.name;
  for (const [kind, made] of [["svg", save], ["png", savePng]]) {
    const button = place.appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = "Save as " + kind.toUpperCase();
    button.addEventListener("click", () => {
      const drawn = standalone(shown(figure));
      made(kind === "svg" ? drawn.address : drawn, name + "." + kind);
    });
  }
}
