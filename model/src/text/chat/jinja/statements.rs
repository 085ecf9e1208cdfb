//! Evaluator of statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Fault;
use super::ast::{Block, Expr, For, Kind, Macro, Statement, Step, Target};
use super::budget::{CELL, STEP};
use super::machine::{Given, Machine};
use super::value::{Function, List, Loop, Value};

/// Reason why a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
}

impl Machine<'_> {
    pub(super) fn block(&mut self, block: &Block) -> Result<Flow, Fault> {
        self.deeper(|machine| {
            for statement in block {
                machine.budget.pay(STEP)?;
                machine.line = statement.line;
                match machine.statement(statement)? {
                    Flow::On => {}
                    flow => return Ok(flow),
                }
            }
            Ok(Flow::On)
        })
    }

    #[inline(never)]
    fn statement(&mut self, statement: &Statement) -> Result<Flow, Fault> {
        match &statement.kind {
            Kind::Text(text) => self.write(text)?,
            Kind::Output(expr) => self.output(expr)?,
            Kind::If(branches, otherwise) => {
                for (condition, block) in branches {
                    if self.eval(condition)?.is_true() {
                        return self.block(block);
                    }
                }
                return self.block(otherwise);
            }
            Kind::For(repeat) => self.repeat(repeat)?,
            Kind::Set(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            Kind::Capture(target, filters, block) => {
                let value = self.captured(filters, block)?;
                self.assign(target, value)?;
            }
            Kind::Filter(filters, block) => {
                let value = self.captured(filters, block)?;
                let text = self.text(&value)?;
                self.write(&text)?;
            }
            Kind::With(variables, block) => return self.with(variables, block),
            Kind::Macro(number) => {
                let name = self.template.macros[*number].name.clone();
                self.set(&name, Value::Function(Function::Macro(*number)))?;
            }
            Kind::Do(expr) => drop(self.eval(expr)?),
            Kind::Generation(block) => return self.block(block),
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn write(&mut self, text: &str) -> Result<(), Fault> {
        self.budget.pay(text.len())?;
        self.out.push_str(text);
        Ok(())
    }

    fn output(&mut self, expr: &Expr) -> Result<(), Fault> {
        match self.eval(expr)? {
            Value::Str(text) => self.write(&text),
            value => {
                let text = self.text(&value)?;
                self.write(&text)
            }
        }
    }

    /// Runs `what` in a new scope.
    fn scoped<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.scopes.push(BTreeMap::new());
        let result = what(self);
        self.scopes.pop();
        result
    }

    #[inline(never)]
    fn with(&mut self, variables: &[(Target, Expr)], block: &Block) -> Result<Flow, Fault> {
        let mut values = Vec::with_capacity(variables.len());
        for (target, value) in variables {
            values.push((target, self.eval(value)?));
        }
        self.scoped(|machine| {
            for (target, value) in values {
                machine.assign(target, value)?;
            }
            machine.block(block)
        })
    }

    #[inline(never)]
    fn repeat(&mut self, repeat: &For) -> Result<(), Fault> {
        let mut items = self.eval(&repeat.items)?.items(&mut self.budget)?;
        let outer = match self.variable("loop")? {
            Value::Loop(around) => around.outer + 1,
            _ => 0,
        };
        if let Some(condition) = &repeat.condition {
            let mut kept = Vec::new();
            for item in items.iter() {
                self.budget.pay(CELL)?;
                let keeps = self.scoped(|machine| {
                    machine.assign(&repeat.target, item.clone())?;
                    Ok(machine.eval(condition)?.is_true())
                })?;
                if keeps {
                    kept.push(item.clone());
                }
            }
            items = Arc::new(List::new(kept)?);
        }
        if items.is_empty() {
            self.block(&repeat.otherwise)?;
        }
        for (index, item) in items.iter().enumerate() {
            let state = Value::Loop(Arc::new(Loop { items: items.clone(), index, outer }));
            let flow = self.scoped(|machine| {
                machine.define("loop", state);
                machine.assign(&repeat.target, item.clone())?;
                machine.block(&repeat.body)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// Returns the filtered output of a block.
    fn captured(&mut self, filters: &[Step], block: &Block) -> Result<Value, Fault> {
        let text = self.capture(|machine| machine.scoped(|machine| machine.block(block)))?;
        let mut value = Value::Str(text.into());
        for filter in filters {
            value = self.step(value, filter)?;
        }
        Ok(value)
    }

    fn capture(&mut self, what: impl FnOnce(&mut Self) -> Result<Flow, Fault>) -> Result<String, Fault> {
        let outer = std::mem::take(&mut self.out);
        what(self)?;
        Ok(std::mem::replace(&mut self.out, outer))
    }

    #[inline(never)]
    fn assign(&mut self, target: &Target, value: Value) -> Result<(), Fault> {
        match target {
            Target::Name(name) => self.set(name, value),
            Target::Field(name, field) => match self.variable(name)? {
                Value::Namespace(number) => {
                    let budget = &mut self.budget;
                    match self.namespaces.get_mut(number) {
                        Some(fields) => fields.set(Value::Str(field.clone()), value, budget),
                        None => Ok(()),
                    }
                }
                other => Err(Fault::new(format!(
                    "\"{name}.{field}\" cannot be set: \"{name}\" is {}, not a namespace",
                    other.kind()
                ))),
            },
            Target::Several(targets) => {
                let items = value.items(&mut self.budget)?;
                if items.len() != targets.len() {
                    return Err(Fault::new(format!("{} values for {} names", items.len(), targets.len())));
                }
                for (target, item) in targets.iter().zip(items.iter()) {
                    self.assign(target, item.clone())?;
                }
                Ok(())
            }
        }
    }

    fn set(&mut self, name: &Arc<str>, value: Value) -> Result<(), Fault> {
        self.budget.pay(2 * CELL)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), value);
        }
        Ok(())
    }

    /// Calls a macro; its output is its value.
    pub(super) fn call_macro(&mut self, called: &Macro, given: &Given) -> Result<Value, Fault> {
        if given.positional.len() > called.parameters.len() {
            return Err(Fault::new(format!(
                "the macro \"{}\" has {} arguments, not {}",
                called.name,
                called.parameters.len(),
                given.positional.len()
            )));
        }
        // Each parameter is searched among the named arguments.
        self.budget.pay_each(called.parameters.len(), given.named.len() + 1)?;
        let base = std::mem::replace(&mut self.base, self.scopes.len());
        let text = self.capture(|machine| {
            machine.scoped(|machine| {
                for (at, (name, default)) in called.parameters.iter().enumerate() {
                    let value = match (given.get(at, name), default) {
                        (Some(value), _) => value.clone(),
                        (None, Some(default)) => machine.eval(default)?,
                        (None, None) => Value::Undefined,
                    };
                    machine.set(name, value)?;
                }
                machine.block(&called.body)
            })
        });
        self.base = base;
        Ok(Value::Str(text?.into()))
    }
}
