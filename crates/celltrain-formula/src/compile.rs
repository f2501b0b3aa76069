//! Compiles a checked tree to bytecode.

use crate::arithmetic::{OfOne, OfTwo};
use crate::code::{Instruction, Program, REGISTERS, Registers, Test};
use crate::fault::Fault;
use crate::language::Function;
use crate::tree::{Binary, Expression, Node};
use crate::vocabulary::{Meaning, Vocabulary};

/// Compiles programs that share registers. The values of names come first and constants follow; temporaries grow down
/// from the last register.
#[derive(Clone, Debug)]
pub struct Compiler {
    constants: Vec<f64>,
    /// The register of the first constant.
    first: u8,
}

impl Compiler {
    /// Creates a compiler with `names` registers for the values of names.
    pub fn new(names: u8) -> Self {
        Self { constants: Vec::new(), first: names }
    }

    /// Compiles an expression that was checked with the same vocabulary.
    ///
    /// # Errors
    /// Returns an error if the program needs too many registers or operations.
    pub fn compile(&mut self, expression: &Expression, vocabulary: &Vocabulary) -> Result<Program, Fault> {
        let mut writer = Writer {
            compiler: self,
            vocabulary,
            code: Vec::new(),
            labels: Vec::new(),
            lowest: REGISTERS,
            named: Vec::new(),
            reads: Vec::new(),
            draws: false,
        };
        let answer = writer.value(expression, None)?;
        let (constant, a) = match answer {
            Place::Constant(value) => {
                (Some(value).filter(|_| writer.code.is_empty()), writer.constant(value, expression)?)
            }
            Place::Register(register) => (None, register),
        };
        writer.code.push(Instruction::Return(a));
        let Writer { mut code, labels, mut reads, draws, .. } = writer;
        for instruction in &mut code {
            if let Instruction::Jump(target) | Instruction::JumpIf(.., target) = instruction {
                *target = labels[usize::from(*target)].expect("every label has an address");
            }
        }
        reads.sort_unstable();
        reads.dedup();
        Ok(Program { code, reads, draws, constant })
    }

    /// Returns registers with the constants in place and 0 elsewhere.
    pub fn registers(&self) -> Box<Registers> {
        let mut registers = Box::new([0.0; REGISTERS]);
        registers[usize::from(self.first)..][..self.constants.len()].copy_from_slice(&self.constants);
        registers
    }

    fn constants_end(&self) -> usize {
        usize::from(self.first) + self.constants.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Constant(f64),
    Register(u8),
}

struct Writer<'a> {
    compiler: &'a mut Compiler,
    vocabulary: &'a Vocabulary,
    code: Vec<Instruction>,
    /// Position of each label, by number. Instructions hold label numbers until all labels are placed.
    labels: Vec<Option<u16>>,
    /// The lowest register in use as a temporary.
    lowest: usize,
    named: Vec<(&'a str, Place)>,
    reads: Vec<u8>,
    draws: bool,
}

impl<'a> Writer<'a> {
    /// Returns the fault for a number when no register is left for it.
    fn too_many(&self, at: &Expression) -> Fault {
        let (names, left) = (self.compiler.first, LEAST_TEMPORARY - usize::from(self.compiler.first));
        let problem = format!(
            "has too many numbers: names use {names} of {LEAST_TEMPORARY} places, so only {left} are left for the \
             different numbers of all formulas"
        );
        Fault::new(at.at.clone(), problem)
    }

    /// Returns the fault for an expression that needs too many temporaries.
    fn too_large(at: &Expression) -> Fault {
        let most = REGISTERS - LEAST_TEMPORARY;
        Fault::new(at.at.clone(), format!("needs more than {most} values at once; reduce the nesting of let and if"))
    }

    fn constant(&mut self, value: f64, at: &Expression) -> Result<u8, Fault> {
        let same = |known: &f64| known.to_bits() == value.to_bits();
        let place = match self.compiler.constants.iter().position(same) {
            Some(place) => place,
            None if self.compiler.constants_end() < LEAST_TEMPORARY => {
                self.compiler.constants.push(value);
                self.compiler.constants.len() - 1
            }
            None => return Err(self.too_many(at)),
        };
        u8::try_from(usize::from(self.compiler.first) + place).map_err(|_| self.too_many(at))
    }

    fn temporary(&mut self, at: &Expression) -> Result<u8, Fault> {
        if self.lowest <= LEAST_TEMPORARY {
            return Err(Self::too_large(at));
        }
        self.lowest -= 1;
        u8::try_from(self.lowest).map_err(|_| Self::too_large(at))
    }

    fn register(&mut self, place: Place, at: &Expression) -> Result<u8, Fault> {
        match place {
            Place::Register(register) => Ok(register),
            Place::Constant(value) => self.constant(value, at),
        }
    }

    fn label(&mut self, at: &Expression) -> Result<u16, Fault> {
        self.labels.push(None);
        u16::try_from(self.labels.len() - 1).map_err(|_| Self::too_large(at))
    }

    fn place(&mut self, label: u16) {
        self.labels[usize::from(label)] = u16::try_from(self.code.len()).ok();
    }

    fn operate(&mut self, instruction: Instruction, at: &Expression) -> Result<(), Fault> {
        if self.code.len() >= MOST_INSTRUCTIONS {
            let problem = format!("needs more than {MOST_INSTRUCTIONS} operations; shorten the formula");
            return Err(Fault::new(at.at.clone(), problem));
        }
        self.code.push(instruction);
        Ok(())
    }

    /// Compiles an expression and returns the location of its value: the register `into`, if given.
    fn value(&mut self, of: &'a Expression, into: Option<u8>) -> Result<Place, Fault> {
        let free = self.lowest;
        let place = match &of.node {
            Node::Number(value, _) => Place::Constant(*value),
            Node::Truth(value) => Place::Constant(f64::from(u8::from(*value))),
            Node::Name(name) => self.name(name),
            Node::Negative(inner) => self.one(OfOne::Negative, inner, (free, into), of)?,
            Node::Binary(Binary::Arithmetic(operation), parts) => {
                let operands = (self.value(&parts[0], None)?, self.value(&parts[1], None)?);
                self.two(*operation, operands, (free, into), of)?
            }
            Node::Call(function, parts) => self.call(*function, parts, (free, into), of)?,
            Node::If(parts) => {
                let to = self.target(into, of)?;
                let inside = self.lowest;
                let (other, end) = (self.label(of)?, self.label(of)?);
                self.branch(&parts[0], false, other)?;
                self.value(&parts[1], Some(to))?;
                self.operate(Instruction::Jump(end), of)?;
                self.place(other);
                self.lowest = inside;
                self.value(&parts[2], Some(to))?;
                self.place(end);
                self.lowest = inside;
                return Ok(Place::Register(to));
            }
            Node::Let(name, parts) => {
                let to = self.target(into, of)?;
                let inside = self.lowest;
                let value = self.named_value(&parts[0])?;
                self.named.push((name, value));
                self.value(&parts[1], Some(to))?;
                self.named.pop();
                self.lowest = inside;
                return Ok(Place::Register(to));
            }
            Node::Not(_) | Node::Binary(..) => {
                let to = self.target(into, of)?;
                let inside = self.lowest;
                let (otherwise, end) = (self.label(of)?, self.label(of)?);
                self.branch(of, false, otherwise)?;
                for (holds, jumps) in [(1.0, true), (0.0, false)] {
                    let a = self.constant(holds, of)?;
                    self.operate(Instruction::Copy(to, a), of)?;
                    if jumps {
                        self.operate(Instruction::Jump(end), of)?;
                        self.place(otherwise);
                    }
                }
                self.place(end);
                self.lowest = inside;
                return Ok(Place::Register(to));
            }
        };
        if let Some(to) = into.filter(|to| place != Place::Register(*to)) {
            let a = self.register(place, of)?;
            self.operate(Instruction::Copy(to, a), of)?;
            self.lowest = free;
            return Ok(Place::Register(to));
        }
        Ok(place)
    }

    /// Compiles the value of a `let`. The register of the value stays reserved until the name goes out of scope.
    fn named_value(&mut self, of: &'a Expression) -> Result<Place, Fault> {
        let free = self.lowest;
        let to = self.temporary(of)?;
        let inside = self.lowest;
        Ok(match self.value(of, None)? {
            // A known value needs no register.
            place @ Place::Constant(_) => {
                self.lowest = free;
                place
            }
            Place::Register(a) => {
                self.lowest = inside;
                self.operate(Instruction::Copy(to, a), of)?;
                Place::Register(to)
            }
        })
    }

    fn target(&mut self, into: Option<u8>, at: &Expression) -> Result<u8, Fault> {
        into.map_or_else(|| self.temporary(at), Ok)
    }

    fn name(&mut self, name: &str) -> Place {
        if let Some((_, place)) = self.named.iter().rev().find(|(named, _)| *named == name) {
            return *place;
        }
        let word = self.vocabulary.find(name).expect("a formula that was checked has only known names");
        match word.meaning {
            Meaning::Constant(value) => Place::Constant(value),
            Meaning::Register(register) | Meaning::ByVc { register, .. } => {
                self.reads.push(register);
                Place::Register(register)
            }
            Meaning::NotHere(_) => unreachable!("a checked formula uses only names available at its place"),
        }
    }

    /// Compiles an operation on two values. If both values are known and the result need not be replaced, computes the
    /// result during compilation.
    fn two(
        &mut self,
        operation: OfTwo,
        (a, b): (Place, Place),
        (free, into): (usize, Option<u8>),
        at: &Expression,
    ) -> Result<Place, Fault> {
        if let (Place::Constant(a), Place::Constant(b)) = (a, b) {
            let mut replaced = 0;
            let value = operation.of(a, b, &mut replaced);
            if replaced == 0 {
                return Ok(Place::Constant(value));
            }
        }
        let (a, b) = (self.register(a, at)?, self.register(b, at)?);
        self.lowest = free;
        let to = self.target(into, at)?;
        self.operate(Instruction::Two(operation, to, a, b), at)?;
        Ok(Place::Register(to))
    }

    /// Compiles an operation on one value. Computes the result during compilation under the same conditions as `two`.
    fn one(
        &mut self,
        operation: OfOne,
        of: &'a Expression,
        (free, into): (usize, Option<u8>),
        at: &Expression,
    ) -> Result<Place, Fault> {
        let a = self.value(of, None)?;
        if let Place::Constant(a) = a {
            let mut replaced = 0;
            let value = operation.of(a, &mut replaced);
            if replaced == 0 {
                return Ok(Place::Constant(value));
            }
        }
        let a = self.register(a, at)?;
        self.lowest = free;
        let to = self.target(into, at)?;
        self.operate(Instruction::One(operation, to, a), at)?;
        Ok(Place::Register(to))
    }

    fn call(
        &mut self,
        function: Function,
        parts: &'a [Expression],
        (free, into): (usize, Option<u8>),
        at: &'a Expression,
    ) -> Result<Place, Fault> {
        match function {
            Function::One(operation) => self.one(operation, &parts[0], (free, into), at),
            Function::Several(operation) => {
                let mut all = self.value(&parts[0], None)?;
                for part in &parts[1..] {
                    let next = self.value(part, None)?;
                    // The result does not go into `into`, because later arguments may still read that register. The
                    // caller copies the result.
                    all = self.two(operation, (all, next), (free, None), at)?;
                }
                Ok(all)
            }
            Function::Random => {
                self.draws = true;
                let to = self.target(into, at)?;
                self.operate(Instruction::Draw(to), at)?;
                Ok(Place::Register(to))
            }
            Function::Sum => {
                let Node::Name(name) = &parts[0].node else { unreachable!("a checked formula sums only a name") };
                let word = self.vocabulary.find(name).expect("a formula that was checked has only known names");
                let Meaning::ByVc { sum, .. } = word.meaning else {
                    unreachable!("a checked formula sums only values by VC")
                };
                Ok(Place::Constant(sum))
            }
        }
    }

    /// Compiles a jump to a label that is taken if the value of a condition equals `on`.
    fn branch(&mut self, of: &'a Expression, on: bool, label: u16) -> Result<(), Fault> {
        let free = self.lowest;
        match &of.node {
            Node::Not(inner) => self.branch(inner, !on, label)?,
            Node::Binary(operator @ (Binary::And | Binary::Or), parts) => {
                let decides = *operator == Binary::Or;
                if on == decides {
                    self.branch(&parts[0], on, label)?;
                    self.branch(&parts[1], on, label)?;
                } else {
                    let past = self.label(of)?;
                    self.branch(&parts[0], decides, past)?;
                    self.branch(&parts[1], on, label)?;
                    self.place(past);
                }
            }
            Node::Binary(operator, parts) => {
                let (a, b) = (self.value(&parts[0], None)?, self.value(&parts[1], None)?);
                let (test, holds, swapped) = match operator {
                    Binary::Less => (Test::Less, true, false),
                    Binary::AtMost => (Test::AtMost, true, false),
                    Binary::Greater => (Test::Less, true, true),
                    Binary::AtLeast => (Test::AtMost, true, true),
                    Binary::Equal => (Test::Equal, true, false),
                    _ => (Test::Equal, false, false),
                };
                let (a, b) = if swapped { (b, a) } else { (a, b) };
                let (a, b) = (self.register(a, of)?, self.register(b, of)?);
                self.operate(Instruction::JumpIf(test, on == holds, [a, b], label), of)?;
            }
            _ => match self.value(of, None)? {
                Place::Constant(value) => {
                    if (value != 0.0) == on {
                        self.operate(Instruction::Jump(label), of)?;
                    }
                }
                Place::Register(a) => {
                    let b = self.constant(0.0, of)?;
                    self.operate(Instruction::JumpIf(Test::Equal, !on, [a, b], label), of)?;
                }
            },
        }
        self.lowest = free;
        Ok(())
    }
}

/// Maximum number of operations in a program.
const MOST_INSTRUCTIONS: usize = 2000;
/// First register for temporaries. The registers below it are for names and constants. With this fixed split, a
/// program's temporaries cannot overwrite another program's constants.
const LEAST_TEMPORARY: usize = 128;
