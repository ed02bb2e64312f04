//! What can be wrong with a text or with its execution.

/// Why a kernel was not executed to its end. Each is an error of the kernel, of the launch, or of what this machine knows
/// of PTX; none is one of the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is not of the form that nvcc writes.
    #[error("PTX, line {line}: {what}")]
    Text {
        /// Of the module's text, from 1.
        line: u32,
        /// What is there or missing.
        what: String,
    },
    /// An instruction, type or directive that this machine does not have.
    #[error("PTX, line {line}: `{what}` is not known here: add it to gpu/ptx/src/decode")]
    Unknown {
        /// Of the module's text, from 1.
        line: u32,
        /// As it is written.
        what: String,
    },
    /// A carry flag is read where none was written: chains end at labels, branches and calls.
    #[error("PTX, line {line} in {function}: reads a carry flag that {what}")]
    Flag {
        /// The kernel or function.
        function: String,
        /// Of the module's text, from 1.
        line: u32,
        /// What is wrong with the flag.
        what: &'static str,
    },
    /// No kernel of that name in any module.
    #[error("no kernel is called {0}")]
    NoKernel(String),
    /// In the execution of an instruction.
    #[error("{function}, PTX line {line}: {what}")]
    Execution {
        /// The kernel or function.
        function: String,
        /// Of the module's text, from 1.
        line: u32,
        /// What happened.
        what: Wrong,
    },
}

/// What goes wrong when an instruction is executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A synchronising instruction that names lanes which do not execute it at this time.
    #[error("lanes {named:#010x} are to take part and lanes {present:#010x} do")]
    Apart {
        /// As the instruction names them.
        named: u32,
        /// Those that execute it together.
        present: u32,
    },
    /// A lane that reads what a lane outside the exchange holds.
    #[error("lane {lane} reads from lane {source_lane}, which takes no part")]
    Source {
        /// The one that reads.
        lane: usize,
        /// The one that it reads from.
        source_lane: u32,
    },
    /// Two threads use the same memory and at least one writes, with nothing between that orders them.
    #[error("race: thread {thread} {does} {space} memory at {address:#x}, which thread {other} {did}")]
    Race {
        /// Of the launch: its block's number times the block's threads, rounded up to warps, plus its own.
        thread: u32,
        /// "reads", "writes", …
        does: &'static str,
        /// "global" or "shared".
        space: &'static str,
        /// In that space.
        address: u64,
        /// The other one; in words where there are several.
        other: String,
        /// "read", "wrote", …
        did: &'static str,
    },
    /// Memory that nothing has written in this block.
    #[error("lane {lane} reads shared memory at {address:#x}, which nothing has written")]
    Unwritten {
        /// The one that reads.
        lane: usize,
        /// In shared memory.
        address: u64,
    },
    /// Memory outside every allocation of its space.
    #[error("lane {lane} uses {bytes} bytes of {space} memory at {address:#x}, which are not allocated")]
    Outside {
        /// The one that does.
        lane: usize,
        /// How many.
        bytes: usize,
        /// "global", "shared" or "local".
        space: &'static str,
        /// In that space.
        address: u64,
    },
    /// An address that is no multiple of what is read or written at once.
    #[error("lane {lane} uses {bytes} bytes at {address:#x}, which is no multiple of them")]
    Misaligned {
        /// The one that does.
        lane: usize,
        /// How many at once.
        bytes: usize,
        /// The address.
        address: u64,
    },
    /// A division by zero.
    #[error("lane {lane} divides by zero")]
    Division {
        /// The one that does.
        lane: usize,
    },
    /// Calls nested too deeply for the room of local memory.
    #[error("local memory is used up")]
    Stack,
}
