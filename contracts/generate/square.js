// GtSquare.sol: Granger's and Scott's squares in the cyclotomic subgroup.
"use strict";
const { LIFTS, declarations } = require("./numbers");
const { F2 } = require("./polynomial");
const { Residues, Machine, placeA, expectSums } = require("./machine");
const { checkSums, operandBox } = require("./reduce");
const { at, coefficient, NAMES } = require("./layout");
const { body } = require("./format");

/** Pairs (a, b), and where a² + ξb² and 2ab (`xi`: times ξ) go, as powers of w. */
const PAIRS = [
  { a: 0, b: 3, to: 0, toProduct: 3, xi: false },
  { a: 1, b: 4, to: 2, toProduct: 5, xi: false },
  { a: 2, b: 5, to: 4, toProduct: 1, xi: true },
];

/** What T is to be: a² + ξb² − 2z and 2ab + 2z, the last terms by factors of R modulo p. */
function sums() {
  const z = [0, 1, 2, 3, 4, 5].map((k) => F2.element(`a${k}`));
  const result = [];
  for (const { a, b, to, toProduct, xi } of PAIRS) {
    const squares = F2.plus(F2.times(z[a], z[a]), F2.timesXi(F2.times(z[b], z[b])));
    const product = F2.scaled(F2.times(z[a], z[b]), 2n);
    result[to] = F2.plus(squares, F2.scaled(z[to], LIFTS.minus));
    result[toProduct] = F2.plus(xi ? F2.timesXi(product) : product, F2.scaled(z[toProduct], LIFTS.plus));
  }
  return result;
}

/** One pair. One assembly block for a statement or two: see GtResidues.sol. */
function pair(m, R, { a, b, to, toProduct, xi }) {
  const { r } = R;
  const load = (k, part) => m.load(coefficient(at.A, r, k, part));
  const store = (k, part, word) => m.store(coefficient(at.T, r, k, part), word);
  const lift = (k, part, sign) => R.times(load(k, part), R.constant(`LIFT_${sign}_${r}`));
  // Modulo M1 sums of three residues fit a word, so most are not reduced.
  const add = (x, y) => (r === 2 ? R.plus(x, y) : R.lazy(x, y));
  const twice = (x) => add(x, x);
  const subtract = (x, y) => (r === 0 ? R.minus(x, y) : add(x, R.negated(y)));
  const assembly = (statements) => m.assembly(statements);
  const set = (name, word) => m.set(name, word);
  let ax, ay, bx, by, sa, sb, s, d, t;

  assembly(() => {
    ax = set("ax", load(a, 0));
    ay = set("ay", load(a, 1));
    bx = set("bx", load(b, 0));
    by = set("by", load(b, 1));
  });
  assembly(() => {
    sa = set("sa", add(ax, ay));
    sb = set("sb", add(bx, by));
  });
  // b² = s + d·u
  assembly(() => (s = set("s", R.times(sb, subtract(bx, by)))));
  assembly(() => {
    by = set("by", twice(by));
    d = set("d", R.times(bx, by));
  });
  // a² + ξb² − 2z
  const real = () => R.times(sa, subtract(ax, ay));
  const imaginary = () => R.times(ax, twice(ay));
  if (r === 0) {
    assembly(() => store(to, 0, add(R.minus(add(real(), s), d), lift(to, 0, "MINUS"))));
    assembly(() => store(to, 1, add(add(add(imaginary(), s), d), lift(to, 1, "MINUS"))));
  } else {
    assembly(() => (t = set("t", real())));
    assembly(() => store(to, 0, R.plus(add(t, s), add(R.negated(d), lift(to, 0, "MINUS")))));
    assembly(() => (t = set("t", imaginary())));
    assembly(() => store(to, 1, R.plus(add(t, s), add(d, lift(to, 1, "MINUS")))));
  }
  // 2ab = (s − d) + (sa − s − d)·u; modulo M1 half of sa, since sb + sb could pass 2^256.
  assembly(() => {
    s = set("s", R.times(ax, twice(bx)));
    d = set("d", R.times(ay, by));
  });
  assembly(() => (sa = set("sa", R.times(sa, r === 1 ? sb : twice(sb)))));
  const plusX = () => lift(toProduct, 0, "PLUS");
  const plusY = () => lift(toProduct, 1, "PLUS");
  const x = (word) => assembly(() => store(toProduct, 0, word()));
  const y = (word) => assembly(() => store(toProduct, 1, word()));
  const minus = (word) => R.negated(word);
  if (r === 0 && !xi) {
    x(() => add(R.minus(s, d), plusX()));
    y(() => add(R.minus(R.minus(sa, s), d), plusY()));
  } else if (r === 0) {
    x(() => add(R.minus(twice(s), sa), plusX()));
    y(() => add(R.minus(sa, twice(d)), plusY()));
  } else if (r === 1 && !xi) {
    x(() => R.plus(add(s, minus(d)), plusX()));
    y(() => R.plus(add(twice(sa), minus(s)), add(minus(d), plusY())));
  } else if (r === 1) {
    x(() => R.plus(twice(s), add(minus(sa), add(minus(sa), plusX()))));
    y(() => R.plus(twice(sa), add(minus(d), add(minus(d), plusY()))));
  } else if (!xi) {
    x(() => R.plus(add(s, minus(d)), plusX()));
    y(() => R.plus(add(sa, minus(s)), add(minus(d), plusY())));
  } else {
    x(() => R.plus(twice(s), add(minus(sa), plusX())));
    assembly(() => (d = set("d", twice(d))));
    y(() => R.plus(add(sa, minus(d)), plusY()));
  }
}

function squares(r) {
  const machine = new Machine();
  placeA(machine, r);
  for (const one of PAIRS) {
    const { a, b, to, toProduct, xi } = one;
    machine.text(
      `// a = ${NAMES[a]}, b = ${NAMES[b]}: ${NAMES[to]} gets a² + ξb² − 2${NAMES[to]}, ` +
        `${NAMES[toProduct]} gets ${xi ? "2ξab" : "2ab"} + 2${NAMES[toProduct]}.`,
    );
    machine.scope(() => {
      const names = ["ax", "ay", "bx", "by", "sa", "sb", "s", "d", ...(r === 0 ? [] : ["t"])];
      machine.text(...names.map((name) => `uint256 ${name};`));
      pair(machine, new Residues(r), one);
    });
  }
  expectSums(machine, r, sums());
  return body(machine);
}

function source() {
  checkSums(sums(), operandBox, "square");
  const lifts = [0, 1, 2].flatMap((r) => [`LIFT_MINUS_${r}`, `LIFT_PLUS_${r}`]);
  return `import { GtResidues, M1, M2 } from "./GtResidues.sol";

${declarations(lifts)}
/// @title Squares in the cyclotomic subgroup
/// @notice Granger and Scott (ePrint 2009/565, section 3.2): for z in the subgroup of order p^4 − p^2 + 1 of F_p12,
/// with three pairs (a, b) of z's coefficients, the square's coefficients are
/// \`\`\`
/// 3(a² + ξb²) − 2z_i      and      6ab + 2z_j      (6ξab for one of the pairs)
/// \`\`\`
/// A holds **3z**: in y = 3z the factors three go away, \`y' = (a² + ξb²) − 2y_i\` and \`2ab + 2y_j\`. A product with an
/// operand that is not scaled keeps the scale.
///
/// Per pair: a² and b² as (x + y)(x − y) and 2xy, ab by Karatsuba: 7 multiplications; and 4 for the −2y and +2y,
/// which enter the sum of products as y·(∓2·2^512 mod p). 33 multiplications modulo each of M0, M1 and M2.
library GtSquare {
    /// @notice A ← 3z² where A is 3z. 8,420 gas.
    function square() internal pure {
        square0();
        square1(M1);
        square2(M2);
        GtResidues.reduce();
    }

    /// @dev T's residues modulo 2^256.
    function square0() private pure {
${squares(0)}
    }

    /// @dev T's residues modulo M1; sums of three residues fit a word.
    function square1(uint256 m1) private pure {
${squares(1)}
    }

    /// @dev T's residues modulo M2.
    function square2(uint256 m2) private pure {
${squares(2)}
    }
}
`;
}

module.exports = { source };
