// An answer in words: what it is, how sure that is, and what "sure" means.

import { capital, percent, short } from "./dom.js";
import { labelOf } from "./state.js";

function bestOf(answer) {
  return answer.classes?.[0] ?? null;
}

/** The verdict of an answer: words before the name, the name, the tone, and all as one sentence. */
export function verdictWords(answer) {
  const best = bestOf(answer);
  const label = capital(best ? best.label : labelOf(answer.answer ?? ""));
  if (answer.verdict === "none of these") {
    return {
      before: "None of these — most like", name: label, tone: "none", full: `None of these, most like ${label}.`,
    };
  }
  const name = capital(answer.answer ? labelOf(answer.answer) : label);
  if (answer.verdict === "doubtful") {
    return { before: "Perhaps", name, tone: "doubtful", full: `Perhaps ${name}.` };
  }
  return { before: "", name, tone: "settled", full: `${name}.` };
}

/** How sure an answer is, and what that number says. */
export function doubt(result, answer, model) {
  const best = bestOf(answer);
  if (!best) return "";
  const parts = [];
  if (best.probability === null) {
    parts.push(`Best ${result.among}, with a score of ${short(best.score)}. This model gives no probabilities.`);
  } else if (answer.verdict === "none of these") {
    parts.push(`Judged ${result.among}, it is too unlike all of them.`);
    parts.push(`Had it to be one: ${percent(best.probability)} for ${best.label}.`);
  } else {
    parts.push(`${percent(best.probability)} sure, ${result.among}.`);
    parts.push(model.calibrated
      ? "Of pictures it is this sure of, about that share is named right."
      : "The model is not calibrated: the order counts, not the size.");
  }
  if (answer.strangeness !== null && answer.strangeness !== undefined) {
    parts.push(`${percent(answer.strangeness)} of pictures of other things look at least as much like one of these classes.`);
  }
  return parts.join(" ");
}

/** How doubtful an answer is, as a number to sort by: larger is more doubtful. */
export function doubtOf(answer) {
  const place = { "none of these": 2, doubtful: 1 }[answer.verdict] ?? 0;
  const best = bestOf(answer);
  return place + (best?.probability === null || !best ? 0 : 1 - best.probability);
}
