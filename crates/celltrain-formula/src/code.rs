//! Bytecode and its interpreter.

use crate::arithmetic::{self, Replaced};

/// Number of registers: all that a byte can address, so no access is out of bounds.
pub const REGISTERS: usize = 256;

/// The registers of a program: values of names, constants, and temporaries.
pub type Registers = [f64; REGISTERS];

/// An operation. Jumps go forward only, so every program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Copy {
        to: u8,
        a: u8,
    },
    Add {
        to: u8,
        a: u8,
        b: u8,
    },
    Subtract {
        to: u8,
        a: u8,
        b: u8,
    },
    Multiply {
        to: u8,
        a: u8,
        b: u8,
    },
    Divide {
        to: u8,
        a: u8,
        b: u8,
    },
    Least {
        to: u8,
        a: u8,
        b: u8,
    },
    Greatest {
        to: u8,
        a: u8,
        b: u8,
    },
    Negative {
        to: u8,
        a: u8,
    },
    Absolute {
        to: u8,
        a: u8,
    },
    Floor {
        to: u8,
        a: u8,
    },
    Root {
        to: u8,
        a: u8,
    },
    Exponential {
        to: u8,
        a: u8,
    },
    Logarithm {
        to: u8,
        a: u8,
    },
    Draw {
        to: u8,
    },
    Jump {
        target: u16,
    },
    /// Jumps if the result of the comparison equals `on`.
    JumpIf {
        test: Test,
        on: bool,
        a: u8,
        b: u8,
        target: u16,
    },
    Return {
        a: u8,
    },
}

/// A comparison of two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Less,
    AtMost,
    Equal,
}

/// A compiled rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    pub(crate) code: Vec<Instruction>,
    pub(crate) reads: Vec<u8>,
    pub(crate) draws: bool,
    /// The result, if it is always the same and known.
    pub(crate) constant: Option<f64>,
}

impl Program {
    /// Runs the program. Returns a number; a condition gives 1 if it holds and 0 otherwise. `draw` supplies random
    /// numbers, and `replaced` counts replaced results.
    #[inline]
    pub fn run(&self, registers: &mut Registers, draw: &mut impl FnMut() -> f64, replaced: &mut Replaced) -> f64 {
        let r = registers;
        let mut next = 0;
        while let Some(instruction) = self.code.get(next) {
            next += 1;
            match *instruction {
                Instruction::Copy { to, a } => r[usize::from(to)] = r[usize::from(a)],
                Instruction::Add { to, a, b } => {
                    r[usize::from(to)] = arithmetic::sum(r[usize::from(a)], r[usize::from(b)], replaced);
                }
                Instruction::Subtract { to, a, b } => {
                    r[usize::from(to)] = arithmetic::difference(r[usize::from(a)], r[usize::from(b)], replaced);
                }
                Instruction::Multiply { to, a, b } => {
                    r[usize::from(to)] = arithmetic::product(r[usize::from(a)], r[usize::from(b)], replaced);
                }
                Instruction::Divide { to, a, b } => {
                    r[usize::from(to)] = arithmetic::quotient(r[usize::from(a)], r[usize::from(b)], replaced);
                }
                Instruction::Least { to, a, b } => {
                    r[usize::from(to)] = arithmetic::least(r[usize::from(a)], r[usize::from(b)]);
                }
                Instruction::Greatest { to, a, b } => {
                    r[usize::from(to)] = arithmetic::greatest(r[usize::from(a)], r[usize::from(b)]);
                }
                Instruction::Negative { to, a } => r[usize::from(to)] = -r[usize::from(a)],
                Instruction::Absolute { to, a } => r[usize::from(to)] = r[usize::from(a)].abs(),
                Instruction::Floor { to, a } => r[usize::from(to)] = r[usize::from(a)].floor(),
                Instruction::Root { to, a } => {
                    r[usize::from(to)] = arithmetic::root(r[usize::from(a)], replaced);
                }
                Instruction::Exponential { to, a } => {
                    r[usize::from(to)] = arithmetic::exponential(r[usize::from(a)], replaced);
                }
                Instruction::Logarithm { to, a } => {
                    r[usize::from(to)] = arithmetic::logarithm(r[usize::from(a)], replaced);
                }
                Instruction::Draw { to } => r[usize::from(to)] = draw(),
                Instruction::Jump { target } => next = usize::from(target),
                Instruction::JumpIf { test, on, a, b, target } => {
                    let (a, b) = (r[usize::from(a)], r[usize::from(b)]);
                    let holds = match test {
                        Test::Less => a < b,
                        Test::AtMost => a <= b,
                        Test::Equal => a == b,
                    };
                    if holds == on {
                        next = usize::from(target);
                    }
                }
                Instruction::Return { a } => return r[usize::from(a)],
            }
        }
        unreachable!("every way through a program ends with a return")
    }

    /// Returns whether the program draws random numbers.
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Returns whether the result may depend on the initial value of a register.
    pub fn reads(&self, register: u8) -> bool {
        self.reads.contains(&register)
    }

    /// Returns the constant result, if no register matters and nothing is drawn or replaced.
    pub fn constant(&self) -> Option<f64> {
        self.constant
    }

    /// Returns the number of operations.
    pub fn length(&self) -> usize {
        self.code.len()
    }
}
