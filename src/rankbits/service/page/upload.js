// A picture from the reader's disk, chosen or dropped, as base64.
import { byId } from "./dom.js";

export function prepareUpload(onPicture) {
  const input = byId("picture"), drop = byId("drop"), preview = byId("preview");
  const take = async (file) => {
    if (!file) return;
    if (preview.src) URL.revokeObjectURL(preview.src);
    preview.src = URL.createObjectURL(file);
    preview.hidden = false;
    onPicture(await base64Of(file));
  };
  input.addEventListener("change", () => take(input.files[0]));
  for (const name of ["dragenter", "dragover"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
}

async function base64Of(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 32768) {
    text += String.fromCharCode(...bytes.subarray(start, start + 32768));
  }
  return btoa(text);
}
