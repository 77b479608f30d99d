/* A block of settings is copied by one click. Without the clipboard's door (an old browser, a sandbox) it is selected. */
for (const block of document.querySelectorAll("pre.settings")) {
  const text = block.textContent, button = document.createElement("button"), kept = window.getSelection();
  const done = () => { button.textContent = "Copied"; setTimeout(() => (button.textContent = "Copy"), 2000); };
  button.type = "button";
  button.className = "copy-settings";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      kept.selectAllChildren(block);
      if (!document.execCommand("copy")) return;
    }
    done();
  });
  block.before(button);
}
