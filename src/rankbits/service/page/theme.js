// Light or dark: as the system has it, unless the reader chose one. Runs before the page is drawn.
"use strict";

(() => {
  const CHOICES = ["system", "light", "dark"];
  const stored = () => {
    try {
      return localStorage.getItem("rankbits-theme");
    } catch {
      return null; // a browser may forbid storage
    }
  };
  const apply = (choice) => {
    if (choice === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
  };
  let choice = CHOICES.includes(stored()) ? stored() : "system";
  apply(choice);

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => { button.textContent = `Theme: ${choice}`; };
    button.addEventListener("click", () => {
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      apply(choice);
      show();
      try {
        localStorage.setItem("rankbits-theme", choice);
      } catch { /* then it lasts as long as the page */ }
    });
    show();
  });
})();
