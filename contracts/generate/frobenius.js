// GtFrobenius.sol: images under powers of the Frobenius map, and the constants γ_jk for them.
"use strict";
const assert = require("assert");
const { ELEMENT, at, coefficient, value } = require("./layout");
const { MODULI, SCALES, gamma, mod, hex } = require("./numbers");
const { Polynomial, F2 } = require("./polynomial");
const { Residues, Machine, placeB, valueAt, expectSums } = require("./machine");
const { checkSums, operandBox } = require("./reduce");
const { fromValues } = require("./product");
const { body } = require("./format");

const POWERS = [0, 1, 2, 3, 4, 5];
const IMAGES = [1, 2, 3];
const base = (j) => at.FROBENIUS + ELEMENT * (j - 1);

/** The words of γ_j: its parts modulo M0, its values at ±i modulo M1 and M2 (not halved: the operand is). */
function constants(j) {
  const words = [];
  for (const k of POWERS) {
    const g = F2.constant(gamma(j, k));
    for (const side of [0, 1]) {
      const write = (address, r, c) => {
        words[(address - base(j)) / 32] = mod(c.value() * SCALES[r], MODULI[r]);
      };
      write(coefficient(base(j), 0, k, side), 0, g[side]);
      for (const r of [1, 2]) write(value(base(j), r, k, side), r, valueAt(g, r, side));
    }
  }
  return words;
}

/** What T is to be: conj^j(b_k)·γ_jk. */
function sums(j) {
  return POWERS.map((k) => {
    const b = F2.element(`b${k}`);
    return F2.times(j % 2 === 1 ? F2.conjugate(b) : b, F2.constant(gamma(j, k)));
  });
}

/** `image` for this j; the text is the same for every j, only what it computes with is not. */
function image(j) {
  const m = new Machine();
  const odd = j % 2 === 1;
  const g = (address) => m.load({ base: "c", offset: address - base(j) });
  m.pointer("c", base(j));
  constants(j).forEach((c, i) => m.write(base(j) + 32 * i, { high: c, meaning: Polynomial.constant(c) }));
  m.assembly(() => m.text(`c := add(${hex(at.FROBENIUS)}, mul(sub(j, 1), ${hex(ELEMENT)}))`, "odd := and(j, 1)"));
  const R0 = new Residues(0);
  placeB(m, 0);
  for (const k of POWERS) {
    m.assembly(() => {
      const x = m.let("x", m.load(coefficient(at.B, 0, k, 0)));
      let y = m.let("y", m.load(coefficient(at.B, 0, k, 1)));
      m.text("if odd { y := sub(0, y) }");
      if (odd) {
        m.write("y", R0.negated(y));
        y = m.read("y", "y");
      }
      const gx = m.let("gx", g(coefficient(base(j), 0, k, 0)));
      const gy = m.let("gy", g(coefficient(base(j), 0, k, 1)));
      m.store(coefficient(at.T, 0, k, 0), R0.minus(R0.times(x, gx), R0.times(y, gy)));
      m.store(coefficient(at.T, 0, k, 1), R0.lazy(R0.times(x, gy), R0.times(y, gx)));
    });
  }
  expectSums(m, 0, sums(j));
  for (const r of [1, 2]) {
    const R = new Residues(r);
    placeB(m, r);
    for (const k of POWERS) {
      m.assembly(() => {
        let x = m.let("x", m.load(value(at.B, r, k, 0)));
        let y = m.let("y", m.load(value(at.B, r, k, 1)));
        m.text("if odd {", "    let z := x", "    x := y", "    y := z", "}");
        if (odd) {
          m.write("x", y);
          m.write("y", x);
          [x, y] = [m.read("x", "x"), m.read("y", "y")];
        }
        x = m.set("x", R.times(x, g(value(base(j), r, k, 0))));
        y = m.set("y", R.times(y, g(value(base(j), r, k, 1))));
        fromValues(m, R, k, x, y);
      });
    }
    expectSums(m, r, sums(j));
  }
  return body(m);
}

function stores() {
  const m = new Machine();
  m.assembly(() => {
    for (const j of IMAGES) {
      constants(j).forEach((c, i) => m.text(`mstore(${hex(base(j) + 32 * i)}, ${hex(c)})`));
    }
  });
  return body(m);
}

function source() {
  const texts = IMAGES.map((j) => {
    checkSums(sums(j), operandBox, "Frobenius image");
    return image(j);
  });
  assert(texts.every((text) => text === texts[0]));
  return `import { GtResidues, M1, M2, NEGATED_ROOT_1, NEGATED_ROOT_2 } from "./GtResidues.sol";

/// @title Powers of the Frobenius map on GT
/// @notice In GT the p-th power is the x-th, x = −0xd201000000010000 (r divides p − x). So ψ, the conjugate of the
/// Frobenius map, is the |x|-th power:
/// ψ^j(Σ a_k w^k) = Σ conj^j(a_k)·γ_jk w^k with γ_jk = (−1)^(jk)·ξ^(k(p^j − 1)/6).
/// @dev A loop that reduces only what needs it (some γ are ±1 or u) was tried: 11,600 to 14,800 gas for an image.
library GtFrobenius {
    /// @notice A ← ψ^j(B) for j in 1 … 3. 6,500 gas.
    function image(uint256 j) internal pure {
        imageWith(j, M1, M2);
        GtResidues.reduce();
    }

    /// @dev T's residues; modulo M1 and M2 from the values at ±i, which conjugation swaps.
    function imageWith(uint256 j, uint256 m1, uint256 m2) private pure {
        uint256 c;
        uint256 odd;
${texts[0]}
    }

    /// @notice Writes the constants γ_jk, as operands in Montgomery's form, that \`image\` reads.
    function constants() internal pure {
${stores()}
    }
}
`;
}

module.exports = { source };
