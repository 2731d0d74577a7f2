// Runs before the first paint, so that a chosen theme does not flash.
try {
  var chosen = localStorage.getItem("detent.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch (error) {
  /* storage is blocked: the theme of the system applies */
}
