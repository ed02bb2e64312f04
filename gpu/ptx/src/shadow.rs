//! Who used which memory, and when: what finds races.
//!
//! Threads of different warps are ordered by nothing during a launch; those of one warp by barriers of the warp alone, not
//! by running in lock step and not by shuffles. Two uses of a byte that nothing orders are a race if one of them writes,
//! unless both are atomic.

use std::collections::HashMap;

use crate::fault::Wrong;
use crate::lanes::LANES;

/// How memory is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    /// Through the path that knows of no writes.
    ReadOnly,
    Write,
    Atomic,
}

impl Way {
    fn does(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::ReadOnly => "reads as never written",
            Self::Write => "writes",
            Self::Atomic => "adds to",
        }
    }
}

/// A thread of a launch at a time. Times count barriers of warps and never go back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Who {
    pub(crate) thread: u32,
    pub(crate) time: u32,
}

const NOBODY: u32 = u32::MAX;
/// Lanes of several warps.
const MANY_WARPS: u32 = u32::MAX - 1;
/// With the number of the warp: several of its lanes since its last barrier.
const MANY_LANES: u32 = 1 << 31;

/// Of a word or a byte: the last writer and the last readers.
#[derive(Debug, Clone, Copy)]
struct Cell {
    writer: u32,
    written: u32,
    reader: u32,
    read: u32,
    atomic: bool,
    read_only: bool,
}

const UNUSED: Cell =
    Cell { writer: NOBODY, written: 0, reader: NOBODY, read: 0, atomic: false, read_only: false };

fn warp_of(id: u32) -> u32 {
    if id & MANY_LANES != 0 { id & !MANY_LANES } else { id / LANES as u32 }
}

/// Whether something orders an earlier use, at a time, before `who`.
#[inline(always)]
fn ordered(earlier: u32, at: u32, who: Who) -> bool {
    earlier == NOBODY
        || earlier == who.thread
        || earlier != MANY_WARPS && warp_of(earlier) == warp_of(who.thread) && at != who.time
}

fn describe(id: u32) -> String {
    match id {
        MANY_WARPS => "of several warps".to_owned(),
        id if id & MANY_LANES != 0 => format!("of warp {}, one of several,", id & !MANY_LANES),
        id => id.to_string(),
    }
}

impl Cell {
    #[inline(always)]
    fn used(&mut self, who: Who, way: Way) -> Result<(), (String, &'static str)> {
        let after_write = ordered(self.writer, self.written, who) || self.atomic && way == Way::Atomic;
        if !after_write || way == Way::ReadOnly && self.writer != NOBODY {
            return Err((describe(self.writer), if self.atomic { "added to" } else { "wrote" }));
        }
        match way {
            Way::Read | Way::ReadOnly => {
                self.read_only |= way == Way::ReadOnly;
                self.reader = if self.reader == NOBODY || self.reader == who.thread {
                    who.thread
                } else if self.reader == MANY_WARPS || warp_of(self.reader) != warp_of(who.thread) {
                    MANY_WARPS
                } else if self.read == who.time {
                    MANY_LANES | warp_of(who.thread)
                } else {
                    who.thread
                };
                self.read = who.time;
            }
            Way::Write | Way::Atomic => {
                if !ordered(self.reader, self.read, who) || self.read_only {
                    return Err((
                        describe(self.reader),
                        if self.read_only { "read as never written" } else { "read" },
                    ));
                }
                (self.writer, self.written, self.atomic) = (who.thread, who.time, way == Way::Atomic);
            }
        }
        Ok(())
    }
}

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a word.
const WORD: usize = 4;

/// What is known of a page: of its words, or, once parts of words have been used, of its bytes.
struct Page {
    cells: Vec<Cell>,
    bytes_of_cell: usize,
}

impl Page {
    fn new() -> Self {
        Self { cells: vec![UNUSED; PAGE as usize / WORD], bytes_of_cell: WORD }
    }

    #[cold]
    fn split(&mut self) {
        self.cells = self.cells.iter().flat_map(|cell| [*cell; WORD]).collect();
        self.bytes_of_cell = 1;
    }
}

/// Of a whole space, since it was made.
pub(crate) struct Shadow {
    space: &'static str,
    pages: Vec<Page>,
    numbers: HashMap<u64, usize>,
    /// Pages that were looked for lately, by their lowest bits.
    recent: [(u64, usize); 64],
}

impl Shadow {
    pub(crate) fn new(space: &'static str) -> Self {
        Self { space, pages: vec![], numbers: HashMap::new(), recent: [(u64::MAX, 0); 64] }
    }

    /// As if nothing had been used.
    pub(crate) fn clear(&mut self) {
        self.pages.iter_mut().for_each(|page| page.cells.fill(UNUSED));
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> &mut Page {
        let recent = &mut self.recent[(number % 64) as usize];
        if recent.0 != number {
            let pages = &mut self.pages;
            let known = self.numbers.entry(number).or_insert_with(|| {
                pages.push(Page::new());
                pages.len() - 1
            });
            *recent = (number, *known);
        }
        &mut self.pages[recent.1]
    }

    /// Notes a use of aligned bytes, at most as many as a page has. With `written`, something must have written them.
    ///
    /// # Errors
    /// [`Wrong::Race`], [`Wrong::Unwritten`].
    #[inline(always)]
    pub(crate) fn used(
        &mut self,
        who: Who,
        address: u64,
        bytes: usize,
        way: Way,
        written: bool,
    ) -> Result<(), Wrong> {
        let (first, space) = ((address % PAGE) as usize, self.space);
        let page = self.page(address / PAGE);
        if bytes < page.bytes_of_cell {
            page.split();
        }
        let size = page.bytes_of_cell;
        for (number, cell) in page.cells[first / size..(first + bytes) / size].iter_mut().enumerate() {
            let at = address + (number * size) as u64;
            if written && cell.writer == NOBODY {
                return Err(Wrong::Unwritten { lane: who.thread as usize % LANES, address: at });
            }
            if let Err((other, did)) = cell.used(who, way) {
                return Err(Wrong::Race {
                    thread: who.thread,
                    does: way.does(),
                    space,
                    address: at,
                    other,
                    did,
                });
            }
        }
        Ok(())
    }
}
