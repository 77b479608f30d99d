/* A click on a box of a flame graph makes it as wide as the page; a click on the lowest one shows all again. */
const WIDTH = 1200, CHARACTER = 6.7, PADDING = 4;

function fitted(name, width) {
  const room = Math.floor((width - 2 * PADDING) / CHARACTER);
  return room < 5 ? "" : name.length <= room ? name : name.slice(0, room - 2) + "..";
}

function place(box, x, width) {
  box.rect.setAttribute("x", x);
  box.rect.setAttribute("width", width);
  if (!box.text) {
    box.text = box.group.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "text"));
    box.text.setAttribute("y", box.y + 13);
  }
  box.text.setAttribute("x", x + PADDING);
  box.text.textContent = fitted(box.group.dataset.name, width);
}

for (const graph of document.querySelectorAll("svg.flame")) {
  const boxes = Array.from(graph.querySelectorAll("g"), (group) => {
    const rect = group.querySelector("rect"), number = (name) => Number(rect.getAttribute(name));
    return { group, rect, text: group.querySelector("text"), x: number("x"), y: number("y"), width: number("width") };
  });
  for (const chosen of boxes) {
    chosen.group.addEventListener("click", () => {
      const end = chosen.x + chosen.width, nearly = 0.02, scale = WIDTH / chosen.width;
      for (const box of boxes) {
        const inside = box.y <= chosen.y && box.x >= chosen.x - nearly && box.x + box.width <= end + nearly;
        const caller = box.y > chosen.y && box.x <= chosen.x + nearly && box.x + box.width >= end - nearly;
        box.group.style.display = inside || caller ? "" : "none";
        if (caller) place(box, 0, WIDTH);
        if (inside) place(box, (box.x - chosen.x) * scale, box.width * scale);
      }
    });
  }
}
