//! Functions as they are executed: registers are numbered, labels are places.

/// A place among a function's registers and constants of up to 32 bits.
pub(crate) type Word = u32;
/// A place among those of 64 bits.
pub(crate) type Long = u32;
/// A place among the predicates.
pub(crate) type Predicate = u32;

/// A kernel, or a function that kernels call.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) code: Vec<Instruction>,
    /// For each instruction that is a branch, where its ways meet again: the number of instructions where they do not.
    pub(crate) joins: Vec<u32>,
    pub(crate) words: u32,
    pub(crate) longs: u32,
    pub(crate) predicates: u32,
    /// Places that hold a constant from the start.
    pub(crate) word_constants: Vec<(Word, u32)>,
    pub(crate) long_constants: Vec<(Long, u64)>,
    pub(crate) parameters: Vec<Block>,
    pub(crate) result: Option<Block>,
    /// Bytes of local memory.
    pub(crate) local_bytes: u32,
    /// Registers that may be read before anything is written to them.
    pub(crate) unwritten: Vec<Register>,
}

/// A parameter: so many bytes, in consecutive words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) first: Word,
    pub(crate) bytes: u32,
}

impl Block {
    pub(crate) fn words(self) -> u32 {
        self.bytes.div_ceil(4)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub(crate) operation: Operation,
    pub(crate) guard: Option<Guard>,
    pub(crate) line: u32,
}

/// Executed only where the predicate holds, or does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) predicate: Predicate,
    pub(crate) negated: bool,
}

/// Sums and differences of 32 bits, with the carry flag: what is added, whether the flag comes in and goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carry {
    AddCc,
    AddcCc,
    Addc,
    SubCc,
    SubcCc,
    Subc,
    MadLoCc,
    MadcLoCc,
    MadcLo,
    MadHiCc,
    MadcHiCc,
    MadcHi,
}

impl Carry {
    pub(crate) fn reads(self) -> bool {
        !matches!(self, Self::AddCc | Self::SubCc | Self::MadLoCc | Self::MadHiCc)
    }

    pub(crate) fn writes(self) -> bool {
        !matches!(self, Self::Addc | Self::Subc | Self::MadcLo | Self::MadcHi)
    }

    pub(crate) fn subtracts(self) -> bool {
        matches!(self, Self::SubCc | Self::SubcCc | Self::Subc)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    MulLo,
    MulHi,
    MulHiSigned,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
    Min,
    Max,
    MinSigned,
    MaxSigned,
    Div,
    Rem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Negate,
    Absolute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Type {
    pub(crate) fn bytes(self) -> usize {
        self.bits as usize / 8
    }

    /// The number that the lowest bits are, in 64.
    #[inline(always)]
    pub(crate) fn extend(self, value: u64) -> u64 {
        let shift = 64 - self.bits;
        if self.signed { (((value << shift) as i64) >> shift) as u64 } else { value << shift >> shift }
    }
}

/// A register that is no predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    /// Of 16 bits, in a word.
    Short(Word),
    Word(Word),
    Long(Long),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    /// Global memory that nothing may write during the launch.
    ReadOnly,
    Shared,
    Local,
    Generic,
}

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Word(Word),
    Long(Long),
}

/// A load or a store of up to four values.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) kind: Type,
    pub(crate) values: Vec<Register>,
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

/// A call: the words of its arguments and of its result.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) callee: u32,
    pub(crate) arguments: Vec<Block>,
    pub(crate) result: Option<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Thread,
    Block,
    BlockThreads,
    Blocks,
    Lane,
}

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Carry(Carry, Word, Word, Word, Word),
    /// a·b + c, the low half.
    MadLo(Word, Word, Word, Word),
    /// Whether of 16 bits; destination and operands.
    BinaryWord(Binary, bool, Word, Word, Word),
    BinaryLong(Binary, Long, Long, Long),
    /// A shift of 64 bits.
    ShiftLong(Binary, Long, Long, Word),
    UnaryWord(Unary, bool, Word, Word),
    /// The whole product of words in a long; whether signed.
    MulWide(bool, Long, Word, Word),
    /// The whole product of shorts in a word; whether signed.
    MulWideShort(bool, Word, Word, Word),
    CompareWord(Comparison, Type, Predicate, Word, Word),
    CompareLong(Comparison, bool, Predicate, Long, Long),
    SelectWord(Word, Word, Word, Predicate),
    SelectLong(Long, Long, Long, Predicate),
    MovePredicate(Predicate, Predicate),
    NotPredicate(Predicate, Predicate),
    BinaryPredicate(Binary, Predicate, Predicate, Predicate),
    MoveWord(Word, Word),
    MoveLong(Long, Long),
    /// The address in local memory of a byte of the function's frame.
    MoveLocal(Long, u32),
    MoveSpecial(Word, Special),
    /// From the low and the high half.
    Pack(Long, Word, Word),
    Unpack(Word, Word, Long),
    /// From the type of the source to that of the destination.
    Convert(Type, Type, Register, Register),
    /// Destination, source, what it goes into, position and length.
    InsertBits(Word, Word, Word, Word, Word),
    /// One byte or two of a word: destination, source, first bit, type.
    Extract(Register, Word, u32, Type),
    Load(Box<Access>),
    Store(Box<Access>),
    /// Adds to global memory: what was there, address, offset, what is added.
    AtomicAdd(Word, Long, i64, Word),
    Branch(u32),
    Call(Box<Call>),
    Return,
    /// Named lanes.
    WarpBarrier(Word),
    /// Destination, whether the source is in range, value, source, clamp, named lanes.
    Shuffle(Word, Option<Predicate>, Word, Word, Word, Word),
    /// Whether it holds in any of the named lanes.
    Any(Predicate, Predicate, Word),
}
