// The dialog that asks for a token when the server wants one.

import { button, h, problemBox, showProblem } from "./dom.js";
import { openSession } from "./api.js";

let open = null; // the question that is being asked, so that two requests ask once

function ask() {
  return new Promise((resolve) => {
    let taken = false;
    const box = problemBox();
    const token = h("input", {
      id: "token", type: "password", required: true, autocomplete: "current-password",
    });
    const form = h(
      "form", { method: "dialog", on: { submit: send } },
      h("label", { for: "token" }, "Token"), token, box,
      h("div", { class: "row" },
        h("button", { type: "submit", class: "main" }, "Sign in"),
        button("Not now", () => dialog.close())),
    );
    const dialog = h(
      "dialog", { class: "door", "aria-labelledby": "door-head", on: { close: leave } },
      h("h2", { id: "door-head" }, "Sign in"),
      h("p", {}, "This server answers people who have its token. Whoever started it can tell you."),
      form,
    );

    async function send(event) {
      event.preventDefault();
      try {
        await openSession(token.value);
        taken = true;
        dialog.close();
      } catch (error) {
        showProblem(box, error);
        token.select();
      }
    }

    function leave() {
      dialog.remove();
      open = null;
      resolve(taken);
    }

    document.body.append(dialog);
    dialog.showModal();
    token.focus();
  });
}

/** Ask for the token; true once the server has taken one, false if the person would not. */
export function signIn() {
  open ??= ask();
  return open;
}
