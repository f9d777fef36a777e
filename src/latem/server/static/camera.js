// A dialog that takes one picture with the camera. The camera is let go when it closes.

import { button, h, problemBox, showProblem } from "./dom.js";

function whyNot(error) {
  if (error.name === "NotAllowedError") {
    return "The browser may not use the camera. Allow it in the browser's settings for this page.";
  }
  if (error.name === "NotFoundError" || error.name === "OverconstrainedError") {
    return "This device has no camera. Choose a file instead.";
  }
  return `The camera cannot be used: ${error.message || error.name}.`;
}

/** The dialog; open() shows it, onPicture(file) is called with the picture taken. */
export function camera({ onPicture }) {
  let stream = null;
  const box = problemBox();
  const video = h("video", { playsinline: true, muted: true, "aria-label": "What the camera sees" });
  video.muted = true;
  const take = button("Take the picture", snap, { class: "main", disabled: true });
  const element = h(
    "dialog", { class: "camera", "aria-label": "Take a picture", on: { close: stop } },
    h("div", { class: "dialog-head" },
      h("h2", {}, "Take a picture"),
      button("×", () => element.close(), { class: "close", "aria-label": "Close" })),
    box, video, h("div", { class: "row" }, take),
  );

  function stop() {
    for (const track of stream?.getTracks() ?? []) track.stop();
    stream = null;
    video.srcObject = null;
    take.disabled = true;
  }

  async function open() {
    showProblem(box, null);
    video.hidden = false;
    element.showModal();
    if (!navigator.mediaDevices?.getUserMedia) {
      video.hidden = true;
      showProblem(box, new Error(
        "No camera here: browsers give it only to pages from this machine or over HTTPS. Choose a file instead.",
      ));
      return;
    }
    try {
      const wanted = { video: { facingMode: "environment", width: { ideal: 1280 } } };
      const opened = await navigator.mediaDevices.getUserMedia(wanted);
      if (!element.open) {
        for (const track of opened.getTracks()) track.stop();
        return;
      }
      stream = opened;
      video.srcObject = stream;
      await video.play();
      take.disabled = false;
      take.focus();
    } catch (error) {
      stop();
      video.hidden = true;
      showProblem(box, new Error(whyNot(error)));
    }
  }

  function snap() {
    const canvas = h("canvas", { width: video.videoWidth, height: video.videoHeight });
    canvas.getContext("2d").drawImage(video, 0, 0);
    canvas.toBlob((blob) => {
      element.close();
      onPicture(new File([blob], "camera.jpg", { type: "image/jpeg" }));
    }, "image/jpeg", 0.92);
  }

  return { element, open };
}
