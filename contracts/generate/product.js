// GtProduct.sol: products in F_p12, the form of their second operand, its conjugate.
"use strict";
const { ELEMENT, WORD, at, coefficient, value, valueOfA, minus, sum } = require("./layout");
const { hex, declarations } = require("./numbers");
const { F2 } = require("./polynomial");
const { Residues, Machine, UNKNOWN_B, placeA, placeB, expectOperand, expectSums } = require("./machine");
const { checkSums, signedBox, operandBox } = require("./reduce");
const { body } = require("./format");

const POWERS = [0, 1, 2, 3, 4, 5];
const pairsOf = (k) => POWERS.filter((i) => k - i >= 0 && k - i < 6).map((i) => [i, k - i]);
/** Pairs i + j = k, and those i + j = k + 6, whose products wrap around with a factor ξ. */
const below = (k) => pairsOf(k);
const beyond = (k) => pairsOf(k + 6);

/** What T is to be. */
function sums() {
  const [a, b] = ["a", "b"].map((name) => POWERS.map((k) => F2.element(`${name}${k}`)));
  const total = (pairs) => pairs.map(([i, j]) => F2.times(a[i], b[j])).reduce(F2.plus, F2.constant([0n, 0n]));
  return POWERS.map((k) => F2.plus(total(below(k)), F2.timesXi(total(beyond(k)))));
}

/** x + (y + (z + …)). */
const fold = (words, add) => words.slice(0, -1).reduceRight((rest, word) => add(word, rest), words.at(-1));

function product0() {
  const [m, R] = [new Machine(), new Residues(0)];
  placeA(m, 0);
  placeB(m, 0);
  const part = (base) => (k, which) => m.load(coefficient(base, 0, k, which));
  const [a, b] = [part(at.A), part(at.B)];
  const add = (x, y) => R.lazy(x, y);
  for (const k of POWERS) {
    m.assembly(() => {
      m.store(sum(0, k), add(a(k, 0), a(k, 1)));
      m.store(sum(1, k), add(b(k, 0), b(k, 1)));
    });
  }
  // Karatsuba's three products: x·x, y·y, (x + y)(x + y).
  const products = [
    ([i, j]) => R.times(a(i, 0), b(j, 0)),
    ([i, j]) => R.times(a(i, 1), b(j, 1)),
    ([i, j]) => R.times(m.load(sum(0, i)), m.load(sum(1, j))),
  ];
  for (const k of POWERS) {
    m.text(`// w^${k}`);
    m.assembly(() => {
      const [n, x] = [[], []];
      products.forEach((product, t) => {
        n[t] = m.let(`n${t}`, fold(below(k).map(product), add));
        if (k < 5) x[t] = m.let(`x${t}`, fold(beyond(k).map(product), add));
      });
      const [real, imaginary] = [coefficient(at.T, 0, k, 0), coefficient(at.T, 0, k, 1)];
      if (k < 5) {
        m.store(real, R.minus(add(R.minus(n[0], n[1]), add(x[0], x[0])), x[2]));
        m.store(imaginary, R.minus(add(n[2], x[2]), add(add(n[0], n[1]), add(x[1], x[1]))));
      } else {
        m.store(real, R.minus(n[0], n[1]));
        m.store(imaginary, R.minus(n[2], add(n[0], n[1])));
      }
    });
  }
  expectSums(m, 0, sums());
  return body(m);
}

/** The sum of the words, reduced. Modulo M1 three fit a word, so one reduction is enough for six. */
function reducedSum(R, words, half) {
  if (R.r === 2) return fold(words, (x, y) => R.plus(x, y));
  const lazy = (some) => fold(some, (x, y) => R.lazy(x, y));
  return R.plus(lazy(words.slice(0, half)), lazy(words.slice(half)));
}

/** Coefficient k of the product of values at i (side 0) or at −i (side 1). */
function valueOfProduct(m, R, k, side, b) {
  const product = ([i, j]) => R.times(m.load(valueOfA(R.r, i, side)), b[j]);
  const words = below(k).map(product);
  if (k < 5) {
    const wrapped = beyond(k).map(product);
    // A word that is multiplied next need not be reduced.
    const lazy = R.r === 1 && wrapped.length <= 3;
    const total = lazy ? fold(wrapped, (x, y) => R.lazy(x, y)) : reducedSum(R, wrapped, 3);
    words.push(R.times(R.constant(`XI_${side === 0 ? "PLUS" : "MINUS"}_${R.r}`), total));
  }
  return reducedSum(R, words, Math.min(3, Math.floor((words.length + 1) / 2)));
}

/** x − y, as a factor. */
const difference = (R, x, y) => (R.r === 1 ? R.lazy(x, R.negated(y)) : R.plus(x, R.negated(y)));

/** T's coefficient k from half its values x at i and y at −i: x + y and −i(x − y). */
function fromValues(m, R, k, x, y) {
  m.store(coefficient(at.T, R.r, k, 0), R.plus(x, y));
  m.store(coefficient(at.T, R.r, k, 1), R.times(R.constant(`NEGATED_ROOT_${R.r}`), difference(R, x, y)));
}

function product(r) {
  const [m, R] = [new Machine(), new Residues(r)];
  placeA(m, r);
  placeB(m, r);
  for (const k of POWERS) {
    m.assembly(() => {
      const x = m.let("x", m.load(coefficient(at.A, r, k, 0)));
      const y = m.let("y", R.times(m.load(coefficient(at.A, r, k, 1)), R.constant(`ROOT_${r}`)));
      m.store(valueOfA(r, k, 0), r === 1 ? R.lazy(x, y) : R.plus(x, y));
      m.store(valueOfA(r, k, 1), difference(R, x, y));
    });
  }
  for (const side of [1, 0]) {
    m.scope(() => {
      m.text(...POWERS.map((k) => `uint256 b${k};`));
      const b = m.assembly(() => POWERS.map((k) => m.set(`b${k}`, m.load(value(at.B, r, k, side)))));
      for (const k of POWERS) {
        m.text(`// w^${k} at ${side === 1 ? "−i" : "i"}`);
        m.assembly(() => {
          const word = valueOfProduct(m, R, k, side, b);
          if (side === 1) m.store(minus(k), word);
          else fromValues(m, R, k, m.let("x", word), m.let("y", m.load(minus(k))));
        });
      }
    });
  }
  expectSums(m, r, sums());
  return body(m);
}

/** Puts A, as an operand, where \`to\` points. */
function operand() {
  const m = new Machine();
  m.pointer("to", at.B);
  const a = POWERS.map((k) => F2.element(`a${k}`));
  const there = (address) => ({ base: "to", offset: address - at.B });
  placeA(m, 0);
  m.assembly(() => m.text(`mcopy(to, ${hex(at.A)}, ${hex(ELEMENT / 3)})`));
  for (let offset = 0; offset < ELEMENT / 3; offset += WORD) m.write(at.B + offset, m.load(at.A + offset));
  expectOperand(m, at.B, 0, a);
  for (const r of [1, 2]) {
    const R = new Residues(r);
    placeA(m, r);
    for (const k of POWERS) {
      m.assembly(() => {
        const x = m.let("x", R.times(m.load(coefficient(at.A, r, k, 0)), R.constant(`HALF_${r}`)));
        const y = m.let("y", R.times(m.load(coefficient(at.A, r, k, 1)), R.constant(`HALF_ROOT_${r}`)));
        m.store(there(value(at.B, r, k, 0)), R.plus(x, y));
        m.store(there(value(at.B, r, k, 1)), R.plus(x, R.negated(y)));
      });
    }
    expectOperand(m, at.B, r, a);
  }
  return body(m);
}

function conjugate() {
  const m = new Machine();
  const negated = UNKNOWN_B.map((pair, k) => (k % 2 === 0 ? pair : pair.map((part) => part.scaled(-1n))));
  for (const r of [0, 1, 2]) placeB(m, r);
  m.assembly(() => {
    for (const k of [1, 3, 5]) {
      for (const part of [0, 1]) {
        const place = coefficient(at.B, 0, k, part);
        m.store(place, new Residues(0).negated(m.load(place)));
      }
      for (const r of [1, 2]) {
        for (const side of [0, 1]) {
          const place = value(at.B, r, k, side);
          m.store(place, new Residues(r).negated(m.load(place)));
        }
      }
    }
  });
  for (const r of [0, 1, 2]) expectOperand(m, at.B, r, negated);
  return body(m);
}

/** From B back to A, before it is scaled: in a loop, so only where things are is filled in. */
function start() {
  const third = ELEMENT / 3;
  const half = third / 2;
  return `        assembly ("memory-safe") {
            mcopy(${hex(at.A)}, ${hex(at.B)}, ${hex(third)})
            for { let i := 0 } lt(i, 6) { i := add(i, 1) } {
                let from := add(${hex(at.B + third)}, shl(5, i))
                let to := add(${hex(at.A + third)}, shl(6, i))
                let x := mload(from)
                let y := mload(add(from, ${hex(half)}))
                mstore(to, addmod(x, y, M1))
                mstore(add(to, 0x20), mulmod(NEGATED_ROOT_1, add(x, sub(M1, y)), M1))
                x := mload(add(from, ${hex(third)}))
                y := mload(add(from, ${hex(third + half)}))
                mstore(add(to, ${hex(third)}), addmod(x, y, M2))
                mstore(add(to, ${hex(third + 0x20)}), mulmod(NEGATED_ROOT_2, addmod(x, sub(M2, y), M2), M2))
            }
        }`;
}

function source() {
  const box = (name) => (name[0] === "b" && Number(name[1]) % 2 === 1 ? signedBox() : operandBox());
  checkSums(sums(), box, "product");
  const constants = [1, 2].flatMap((r) => [`ROOT_${r}`, `XI_PLUS_${r}`, `XI_MINUS_${r}`, `HALF_${r}`, `HALF_ROOT_${r}`]);
  return `import {
    GtResidues,
    M1,
    M2,
    NEGATED_ROOT_1,
    NEGATED_ROOT_2,
    THREE_0,
    THREE_1,
    THREE_2
} from "./GtResidues.sol";

${declarations(constants)}
/// @title Products in F_p12
/// @notice \`(Σ a_i w^i)(Σ b_j w^j)\`, w^6 = ξ = 1 + u, over F_p2: 36 products in F_p2, schoolbook (Karatsuba's sums
/// cost as much here as the products that they save), every coefficient reduced once.
///
/// Modulo M0 a product in F_p2 is three multiplications (Karatsuba): 108 MUL. Modulo M1 and M2 the number −1 has a
/// root i, and Z[u]/(u² + 1) maps to two numbers, the values at u = i and u = −i, which multiply one by one: 72 MULMOD
/// and 10 for ξ, and 12 each to go there and back. (A quadratic residue number system.)
///
/// Operand B is prepared: modulo M0 as it is; modulo M1 and M2 half its six values at i, then half those at −i, so
/// that sum and difference of the two products need no halving.
library GtProduct {
    /// @notice A ← A·B. 13,170 gas.
    function multiply() internal pure {
        multiply0();
        multiply1(M1);
        multiply2(M2);
        GtResidues.reduce();
    }

    /// @notice Puts A, as an operand, at \`to\`.
    function operand(uint256 to) internal pure {
        operandWith(to, M1, M2);
    }

    /// @notice B ← B's conjugate over F_p6, its inverse in GT: the odd coefficients negated.
    function conjugate() internal pure {
        conjugateWith(M1, M2);
    }

    /// @notice A ← 3·B.
    function start() internal pure {
${start()}
        GtResidues.scale(THREE_0, THREE_1, THREE_2);
    }

    /// @dev T's residues modulo 2^256. With n the sums of the products that stay below w^6 and x of those that wrap
    /// around, of x·x, y·y and (x + y)(x + y): real n0 − n1 + 2x0 − x2, imaginary n2 + x2 − n0 − n1 − 2x1.
    function multiply0() private pure {
${product0()}
    }

    /// @dev T's residues modulo M1: the products at −i, then those at i, and from both the coefficients.
    function multiply1(uint256 m1) private pure {
${product(1)}
    }

    /// @dev T's residues modulo M2, likewise.
    function multiply2(uint256 m2) private pure {
${product(2)}
    }

    function operandWith(uint256 to, uint256 m1, uint256 m2) private pure {
${operand()}
    }

    function conjugateWith(uint256 m1, uint256 m2) private pure {
${conjugate()}
    }
}
`;
}

module.exports = { source, fromValues };
