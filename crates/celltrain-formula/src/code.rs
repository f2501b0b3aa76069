//! Bytecode and its interpreter.

use crate::arithmetic::{OfOne, OfTwo, Replaced};

/// Number of registers: as many as a byte can address, so no access is out of bounds.
pub const REGISTERS: usize = 256;

/// The registers of a program: values of names, constants, and temporaries.
pub type Registers = [f64; REGISTERS];

/// An instruction; its first register gets the result. Jumps go forward only, so every program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    Copy(u8, u8),
    One(OfOne, u8, u8),
    Two(OfTwo, u8, u8, u8),
    Draw(u8),
    Jump(u16),
    /// Jumps if the comparison of two registers has this result.
    JumpIf(Test, bool, [u8; 2], u16),
    Return(u8),
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
    /// The result of the rule, if the result is constant and known.
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
                Instruction::Copy(to, a) => r[usize::from(to)] = r[usize::from(a)],
                Instruction::One(operation, to, a) => {
                    r[usize::from(to)] = operation.of(r[usize::from(a)], replaced);
                }
                Instruction::Two(operation, to, a, b) => {
                    r[usize::from(to)] = operation.of(r[usize::from(a)], r[usize::from(b)], replaced);
                }
                Instruction::Draw(to) => r[usize::from(to)] = draw(),
                Instruction::Jump(target) => next = usize::from(target),
                Instruction::JumpIf(test, on, compared, target) => {
                    let [a, b] = compared.map(|register| r[usize::from(register)]);
                    let holds = match test {
                        Test::Less => a < b,
                        Test::AtMost => a <= b,
                        Test::Equal => a == b,
                    };
                    if holds == on {
                        next = usize::from(target);
                    }
                }
                Instruction::Return(a) => return r[usize::from(a)],
            }
        }
        unreachable!("every path through a program ends with a return")
    }

    /// Returns whether the program draws random numbers.
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// Returns whether the result may depend on the initial value of a register.
    pub fn reads(&self, register: u8) -> bool {
        self.reads.contains(&register)
    }

    /// Returns the constant result, if it depends on no register and nothing is drawn or replaced.
    pub fn constant(&self) -> Option<f64> {
        self.constant
    }

    /// Returns the number of operations.
    pub fn length(&self) -> usize {
        self.code.len()
    }
}
