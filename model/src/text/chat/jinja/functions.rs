//! Global functions of templates.

use super::Fault;
use super::budget::{CELL, STEP};
use super::machine::{Given, Machine};
use super::value::{Function, Loop, Map, Value};
use crate::text::chat::clock;

/// Most bytes of a date format. Longer ones have no use, and each directive expands to several bytes.
const MAX_FORMAT: usize = 256;

impl Machine<'_> {
    #[inline(never)]
    pub(super) fn call(&mut self, function: &Value, given: &Given) -> Result<Value, Fault> {
        let Value::Function(function) = function else {
            return Err(Fault::new(format!("{} is called, which is no function", function.kind())));
        };
        match function {
            Function::Range => self.range(given),
            Function::Namespace => {
                let fields = self.fields(given)?;
                self.new_namespace(fields)
            }
            Function::Dict => Ok(Value::map(self.fields(given)?)),
            Function::RaiseException => {
                let message = self.text(given.require(0, "message")?)?;
                Err(Fault::new(message))
            }
            Function::StrftimeNow => {
                let format = given.require(0, "format")?.as_str()?;
                if format.len() > MAX_FORMAT {
                    return Err(Fault::new("the format of a date is too long"));
                }
                self.budget.pay(STEP * format.len())?;
                Ok(Value::Str(clock::strftime(format, self.now.unwrap_or(0)).into()))
            }
            Function::Method => {
                Err(Fault::new("methods that change maps, or that are kept as values, are not supported"))
            }
            Function::Macro(number) => {
                let template = self.template;
                self.deeper(|machine| machine.call_macro(&template.macros[*number], given))
            }
        }
    }

    fn range(&mut self, given: &Given) -> Result<Value, Fault> {
        let bounds: Result<Vec<i64>, Fault> = given.positional.iter().map(Value::as_int).collect();
        let (from, to, step) = match bounds?[..] {
            [to] => (0, to, 1),
            [from, to] => (from, to, 1),
            [from, to, step] if step != 0 => (from, to, step),
            _ => return Err(Fault::new("range takes one to three numbers, the last of which is not zero")),
        };
        let distance = if step > 0 { i128::from(to) - i128::from(from) } else { i128::from(from) - i128::from(to) };
        let stride = i128::from(step).abs();
        let count = (distance.max(0) + stride - 1) / stride;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.budget.pay_each(count, CELL)?;
        // The last element is below `to`, so no element is wrong, even if a product wraps.
        Value::list((0..count as i64).map(|i| Value::Int(from.wrapping_add(i.wrapping_mul(step)))).collect())
    }

    /// Returns the fields of a new map: those of the positional maps, then the named arguments.
    fn fields(&mut self, given: &Given) -> Result<Map, Fault> {
        let mut fields = Map::default();
        for value in &given.positional {
            let Value::Map(map) = value else {
                return Err(Fault::new(format!("a map is needed, not {}", value.kind())));
            };
            for (key, value) in map.pairs() {
                fields.set(key.clone(), value.clone(), &mut self.budget)?;
            }
        }
        for (name, value) in &given.named {
            fields.set(Value::Str(name.clone()), value.clone(), &mut self.budget)?;
        }
        Ok(fields)
    }
}

/// Implements `loop.cycle`: one of its arguments in each round.
pub(super) fn cycle(state: &Loop, given: &Given) -> Result<Value, Fault> {
    match given.positional.len() {
        0 => Err(Fault::new("loop.cycle has nothing to go through")),
        count => Ok(given.positional[state.index % count].clone()),
    }
}
