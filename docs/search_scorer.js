// The order of the search's results: pages that answer a question come before pages that contain
// its words, which Sphinx sorts by their titles.
const ANSWERS = [
  [/^questions$/, 8],
  [/^(howto|tutorials|notebooks)\//, 3],
  [/^reference\/(changelog|api)/, -5],
  [/^explanation\/(architecture|contributing|measured)/, -5],
];

var Scorer = {
  score: ([page, , , , score]) => {
    const found = ANSWERS.find(([pattern]) => pattern.test(page));
    return score + (found ? found[1] : 0);
  },
  // As in Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
