// Classes kept for the session: give one a name, list them, delete, download.

import { announce, button, capital, h, problemBox, showProblem } from "./dom.js";
import { address, post, remove } from "./api.js";
import { changes, invented, loadClasses, state } from "./state.js";

/** The form and the list. describe() gives the class as the server wants it, or null. */
export function keptClasses({ describe }) {
  const box = problemBox();
  const said = h("p", { class: "hint said", role: "status" });
  const name = h("input", {
    id: "new-class", type: "text", required: true, maxlength: 80, autocomplete: "off", placeholder: "red jay",
  });
  const write = state.about.may_write ? h("input", { type: "checkbox", id: "write-class" }) : null;
  const form = h(
    "form", { class: "keep", on: { submit: keep } },
    h("label", { for: "new-class" }, "Keep it under a name"),
    h("div", { class: "row" }, name, h("button", { type: "submit", class: "main" }, "Keep")),
    write ? h("label", { class: "check" }, write, "Also write it to the server's disk") : null,
  );
  const list = h("ul", { class: "kept" });
  const element = h(
    "section", { class: "panel", "aria-label": "Classes kept" }, form, box, said, list,
  );

  async function keep(event) {
    event.preventDefault();
    const what = describe();
    if (!what) {
      showProblem(box, new Error("There is no description yet; type one first."));
      return;
    }
    try {
      const asked = { name: name.value.trim(), ...what };
      if (write?.checked) asked.write = true;
      const made = await post("api/classes", asked);
      showProblem(box, null);
      name.value = "";
      await loadClasses();
      said.textContent = `Kept ${capital(made.label)}${made.written ? ", and wrote it to disk" : ""}.`;
    } catch (error) {
      showProblem(box, error);
      name.focus();
    }
  }

  async function drop(each) {
    try {
      await remove("api/classes", { name: each.name });
      showProblem(box, null);
      announce(`${each.label} is deleted.`);
      await loadClasses();
      name.focus();
    } catch (error) {
      showProblem(box, error);
    }
  }

  function draw() {
    const mine = invented();
    const items = mine.map((each) => h(
      "li", {},
      h("b", {}, capital(each.label)),
      h("span", { class: "row" },
        h("a", { href: `#/picture?class=${encodeURIComponent(each.name)}` }, "Try a picture with it"),
        h("a", { href: address("api/classes/table", { name: each.name }), download: "" }, "CSV",
          h("span", { class: "unseen-text" }, ` of ${each.label}`)),
        button("Delete", () => drop(each), { class: "small", "aria-label": `Delete ${each.label}` })),
    ));
    if (mine.length > 1) {
      const all = address("api/classes/table", { name: mine.map((each) => each.name) });
      items.push(h("li", {}, h("a", { href: all, download: "" }, `All ${mine.length} as CSV`)));
    }
    list.replaceChildren(...items);
    list.hidden = !mine.length;
  }
  changes.addEventListener("classes", draw);
  draw();
  return { element, close: () => changes.removeEventListener("classes", draw) };
}
