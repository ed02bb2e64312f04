//! One warp: its lanes execute a function together, apart where they branch, and together again where the ways meet.

mod access;
mod operations;

use std::sync::Arc;

use crate::code::{Base, Call, Function, Operation, Register};
use crate::fault::{Fault, Wrong};
use crate::grid::Machine;
use crate::lanes::{Longs, Mask, Words, lanes_of};
use crate::memory::POISON;

/// The registers of one execution of a function.
pub(crate) struct Frame {
    pub(crate) words: Vec<Words>,
    longs: Vec<Longs>,
    predicates: Vec<Mask>,
}

impl Frame {
    pub(crate) fn new(function: &Function) -> Self {
        let mut frame = Self {
            words: vec![Words::of(0); function.words as usize],
            longs: vec![Longs::of(0); function.longs as usize],
            predicates: vec![0; function.predicates as usize],
        };
        for (place, value) in &function.word_constants {
            frame.words[*place as usize] = Words::of(*value);
        }
        for (place, value) in &function.long_constants {
            frame.longs[*place as usize] = Longs::of(*value);
        }
        frame
    }

    #[inline(always)]
    fn word(&self, place: u32) -> &Words {
        &self.words[place as usize]
    }

    #[inline(always)]
    fn long(&self, place: u32) -> &Longs {
        &self.longs[place as usize]
    }

    #[inline(always)]
    fn set_word(&mut self, place: u32, values: &Words, lanes: Mask) {
        self.words[place as usize].put(values, lanes);
    }

    #[inline(always)]
    fn set_long(&mut self, place: u32, values: &Longs, lanes: Mask) {
        self.longs[place as usize].put(values, lanes);
    }

    #[inline(always)]
    fn set_predicate(&mut self, place: u32, values: Mask, lanes: Mask) {
        let at = &mut self.predicates[place as usize];
        *at = *at & !lanes | values & lanes;
    }

    fn get(&self, register: Register, lane: usize) -> u64 {
        match register {
            Register::Short(place) | Register::Word(place) => u64::from(self.words[place as usize].0[lane]),
            Register::Long(place) => self.longs[place as usize].0[lane],
        }
    }

    fn set(&mut self, register: Register, lane: usize, value: u64) {
        match register {
            Register::Short(place) => self.words[place as usize].0[lane] = value as u32 & 0xffff,
            Register::Word(place) => self.words[place as usize].0[lane] = value as u32,
            Register::Long(place) => self.longs[place as usize].0[lane] = value,
        }
    }

    fn address(&self, base: Base, lane: usize, offset: i64) -> u64 {
        match base {
            Base::Word(place) => u64::from(self.words[place as usize].0[lane].wrapping_add(offset as u32)),
            Base::Long(place) => self.longs[place as usize].0[lane].wrapping_add_signed(offset),
        }
    }
}

/// Lanes that are on one way: where they are, and where they wait for the others.
struct Path {
    place: u32,
    until: u32,
    lanes: Mask,
}
impl Machine<'_> {
    /// Executes a function in some lanes of the warp.
    pub(crate) fn execute(
        &mut self,
        function: &Function,
        frame: &mut Frame,
        lanes: Mask,
    ) -> Result<(), Fault> {
        let before = self.local.enter(function.local_bytes).map_err(|what| Fault::Execution {
            function: function.name.clone(),
            line: function.code.first().map_or(0, |instruction| instruction.line),
            what,
        })?;
        let local_base = self.local.base(function.local_bytes);
        for register in &function.unwritten {
            lanes_of(lanes, false)
                .for_each(|lane| frame.set(*register, lane, u64::from_ne_bytes([POISON; 8])));
        }
        self.walk(function, frame, lanes, local_base)?;
        self.local.leave(before);
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn walk(&mut self, f: &Function, frame: &mut Frame, lanes: Mask, local_base: u64) -> Result<(), Fault> {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what the function needs.
            unsafe { self.walk_avx512(f, frame, lanes, local_base) }
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: likewise.
            unsafe { self.walk_avx2(f, frame, lanes, local_base) }
        } else {
            self.steps(f, frame, lanes, local_base)
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn walk(&mut self, f: &Function, frame: &mut Frame, lanes: Mask, local_base: u64) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    fn walk_avx512(
        &mut self,
        f: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn walk_avx2(
        &mut self,
        f: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        self.steps(f, frame, lanes, local_base)
    }

    /// Lanes that branch apart go on one after the other, each up to the place where all ways meet.
    #[inline(always)]
    fn steps(
        &mut self,
        function: &Function,
        frame: &mut Frame,
        lanes: Mask,
        local_base: u64,
    ) -> Result<(), Fault> {
        let end = function.code.len() as u32;
        let mut paths = vec![Path { place: 0, until: end, lanes }];
        while let Some(path) = paths.last() {
            let Path { mut place, until, mut lanes } = *path;
            let apart = loop {
                if place == until || lanes == 0 {
                    break None;
                }
                let instruction = &function.code[place as usize];
                let active = match instruction.guard {
                    None => lanes,
                    Some(guard) => {
                        let holds = frame.predicates[guard.predicate as usize];
                        lanes & if guard.negated { !holds } else { holds }
                    }
                };
                match instruction.operation {
                    Operation::Branch(target) if active == lanes => place = target,
                    Operation::Branch(_) if active == 0 => place += 1,
                    Operation::Branch(target) => {
                        break Some((
                            function.joins[place as usize],
                            [(place + 1, lanes & !active), (target, active)],
                        ));
                    }
                    Operation::Return => {
                        paths.iter_mut().for_each(|path| path.lanes &= !active);
                        lanes &= !active;
                        place += 1;
                    }
                    _ => {
                        if active != 0 {
                            self.step(&instruction.operation, frame, active, local_base).map_err(|stop| {
                                match stop {
                                    Stop::Inner(fault) => fault,
                                    Stop::Wrong(what) => Fault::Execution {
                                        function: function.name.clone(),
                                        line: instruction.line,
                                        what,
                                    },
                                }
                            })?;
                        }
                        place += 1;
                    }
                }
            };
            match apart {
                None => {
                    paths.pop();
                }
                Some((join, mut ways)) => {
                    if self.turn() {
                        ways.swap(0, 1);
                    }
                    // This path goes on where the two meet.
                    if let Some(path) = paths.last_mut() {
                        path.place = join;
                    }
                    paths.extend(ways.map(|(place, lanes)| Path { place, until: join, lanes }));
                }
            }
        }
        Ok(())
    }
    #[inline(never)]
    fn call(&mut self, call: &Call, frame: &mut Frame, lanes: Mask) -> Result<(), Stop> {
        let callee: Arc<Function> = self.function(call.callee)?;
        let mut inner = self.take_frame(call.callee, &callee);
        for (from, to) in call.arguments.iter().zip(&callee.parameters) {
            let (from, to, words) = (from.first as usize, to.first as usize, from.words() as usize);
            inner.words[to..to + words].copy_from_slice(&frame.words[from..from + words]);
        }
        self.execute(&callee, &mut inner, lanes)?;
        if let (Some(to), Some(from)) = (call.result, callee.result) {
            for word in 0..to.words() {
                let value = *inner.word(from.first + word);
                frame.set_word(to.first + word, &value, lanes);
            }
        }
        self.give_frame(call.callee, inner);
        Ok(())
    }
}

/// Why execution stops: at this instruction, or within the function that it calls.
enum Stop {
    Wrong(Wrong),
    Inner(Fault),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(wrong)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Inner(fault)
    }
}
