//! The order of work of a split-radix transform done length by length.
//!
//! A transform of length N ≥ 4 is made of one of length N/2, in the first half of its elements, and two of length N/4,
//! in the last quarters, whose elements k are first raised to ω^(ks) and ω^(3ks), s = M/N.

/// The transforms of one length, of all cosets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// N, at least 2.
    pub length: usize,
    /// The element at which each transform begins.
    pub starts: Vec<u32>,
    /// Element and exponent of ω of each twiddle that is not 1, those with the same exponent side by side.
    pub twiddles: Vec<[u32; 2]>,
}

/// The levels of `cosets` transforms of length `size`, a power of two, shortest first.
pub fn levels(size: usize, cosets: usize) -> Vec<Level> {
    let mut starts = vec![Vec::new(); size.ilog2() as usize + 1];
    for coset in 0..cosets {
        collect(&mut starts, coset * size, size);
    }
    let level = |(log_length, starts): (usize, Vec<u32>)| {
        let length = 1 << log_length;
        let twiddles = twiddles(size, length, &starts);
        Level { length, starts, twiddles }
    };
    starts.into_iter().enumerate().skip(1).map(level).collect()
}

fn collect(starts: &mut [Vec<u32>], start: usize, length: usize) {
    starts[length.ilog2() as usize].push(start as u32);
    if length >= 4 {
        collect(starts, start, length / 2);
        collect(starts, start + length / 2, length / 4);
        collect(starts, start + length / 4 * 3, length / 4);
    } else if length == 2 {
        collect(starts, start, 1);
        collect(starts, start + 1, 1);
    }
}

fn twiddles(size: usize, length: usize, starts: &[u32]) -> Vec<[u32; 2]> {
    let (quarter, stride) = (length / 4, size / length);
    let of = |k: usize, block: usize, power: usize| {
        starts
            .iter()
            .map(move |start| [start + (block * quarter + k) as u32, (power * k * stride % size) as u32])
    };
    (1..quarter).flat_map(|k| of(k, 2, 1).chain(of(k, 3, 3))).collect()
}
