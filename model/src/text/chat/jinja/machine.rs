//! Evaluator of expressions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Arguments, Comparison, Expr, Step};
use super::budget::{Budget, CELL, STEP};
use super::value::{Function, List, Loop, Map, Value};
use super::{Fault, Template, checks, compare, filters, methods, numbers, subscript, text};

/// Deepest nesting of blocks, expressions and macros during evaluation. A level takes less than 2 KiB of stack, so the
/// deepest evaluation leaves most of the megabyte that browsers provide.
const MAX_DEPTH: usize = 160;
/// Most namespaces in a rendering.
const MAX_NAMESPACES: usize = 10_000;

/// A rendering of a template.
pub(super) struct Machine<'t> {
    pub(super) template: &'t Template,
    pub(super) budget: Budget,
    pub(super) now: Option<i64>,
    /// Current line, for errors.
    pub(super) line: u32,
    pub(super) out: String,
    pub(super) namespaces: Vec<Map>,
    /// Variables of the caller, those of the template, and those of nested blocks.
    pub(super) scopes: Vec<BTreeMap<Arc<str>, Value>>,
    /// First scope of the running macro, which also sees the scopes of the template itself.
    pub(super) base: usize,
    depth: usize,
}

/// Evaluated arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub positional: Vec<Value>,
    pub named: Vec<(Arc<str>, Value)>,
}

impl Given {
    /// Returns the argument at a position or with a name.
    pub fn get(&self, at: usize, name: &str) -> Option<&Value> {
        self.positional.get(at).or_else(|| self.named.iter().find(|(key, _)| **key == *name).map(|(_, value)| value))
    }

    pub fn require(&self, at: usize, name: &str) -> Result<&Value, Fault> {
        self.get(at, name).ok_or_else(|| Fault::new(format!("the argument \"{name}\" is missing")))
    }

    pub fn int(&self, at: usize, name: &str, default: i64) -> Result<i64, Fault> {
        self.get(at, name).map_or(Ok(default), Value::as_int)
    }

    pub fn flag(&self, at: usize, name: &str, default: bool) -> bool {
        self.get(at, name).map_or(default, Value::is_true)
    }
}

impl<'t> Machine<'t> {
    pub fn new(template: &'t Template, budget: Budget, now: Option<i64>) -> Machine<'t> {
        Machine {
            template,
            budget,
            now,
            line: 1,
            out: String::new(),
            namespaces: Vec::new(),
            scopes: vec![BTreeMap::new()],
            base: 0,
            depth: 0,
        }
    }

    /// Sets a variable of the template.
    pub fn define(&mut self, name: &str, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.into(), value);
        }
    }

    /// Renders the whole template.
    pub fn run(&mut self) -> Result<String, Fault> {
        let template = self.template;
        self.block(&template.block)?;
        Ok(std::mem::take(&mut self.out))
    }

    /// Runs `what` one level deeper.
    pub(super) fn deeper<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::new(format!(
                "blocks, expressions and macros are more than {MAX_DEPTH} deep in each other"
            )));
        }
        self.budget.pay(STEP)?;
        self.depth += 1;
        let result = what(self);
        self.depth -= 1;
        result
    }

    pub(super) fn eval(&mut self, expr: &Expr) -> Result<Value, Fault> {
        match expr {
            Expr::Constant(value) => {
                self.budget.pay(STEP)?;
                Ok(value.clone())
            }
            Expr::Name(name) => self.variable(name),
            _ => self.deeper(|machine| machine.compound(expr)),
        }
    }

    #[inline(never)]
    fn compound(&mut self, expr: &Expr) -> Result<Value, Fault> {
        match expr {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Name(name) => self.variable(name),
            Expr::List(items) => Value::list(self.all(items)?),
            Expr::Tuple(items) => Value::tuple(self.all(items)?),
            Expr::Map(pairs) => self.map(pairs),
            Expr::Chain(first, rest) => {
                let mut value = self.eval(first)?;
                for (operator, right) in rest {
                    let right = self.eval(right)?;
                    value = numbers::apply(*operator, &value, &right, &mut self.budget)?;
                }
                Ok(value)
            }
            Expr::Compare(first, rest) => self.compare(first, rest),
            Expr::And(all) => self.logical(all, false),
            Expr::Or(all) => self.logical(all, true),
            Expr::Not(inner) => Ok(Value::Bool(!self.eval(inner)?.is_true())),
            Expr::Negative(inner) => numbers::negative(&self.eval(inner)?),
            Expr::Choice(parts) => {
                let (value, condition, otherwise) = &**parts;
                match otherwise {
                    _ if self.eval(condition)?.is_true() => self.eval(value),
                    Some(otherwise) => self.eval(otherwise),
                    None => Ok(Value::Undefined),
                }
            }
            Expr::Steps(first, steps) => {
                let mut value = self.first(first, steps)?;
                for step in steps {
                    value = self.step(value, step)?;
                }
                Ok(value)
            }
        }
    }

    /// Evaluates the value that steps begin with. Reports an unknown function here, since its value does not have a
    /// name.
    fn first(&mut self, first: &Expr, steps: &[Step]) -> Result<Value, Fault> {
        let value = self.eval(first)?;
        match (first, steps.first(), &value) {
            (Expr::Name(name), Some(Step::Call(_)), Value::Undefined) => {
                Err(Fault::new(format!("there is no function \"{name}\"")))
            }
            (Expr::Name(name), Some(Step::Field(_) | Step::Index(_) | Step::Method(..)), Value::Undefined) => {
                Err(Fault::new(format!("\"{name}\" is undefined")))
            }
            _ => Ok(value),
        }
    }

    #[inline(never)]
    fn all(&mut self, exprs: &[Expr]) -> Result<Vec<Value>, Fault> {
        self.budget.pay_each(exprs.len(), CELL)?;
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    #[inline(never)]
    fn map(&mut self, pairs: &[(Expr, Expr)]) -> Result<Value, Fault> {
        let mut map = Map::default();
        for (key, value) in pairs {
            let (key, value) = (self.eval(key)?, self.eval(value)?);
            map.set(key, value, &mut self.budget)?;
        }
        Ok(Value::map(map))
    }

    #[inline(never)]
    fn compare(&mut self, first: &Expr, rest: &[(Comparison, Expr)]) -> Result<Value, Fault> {
        let mut left = self.eval(first)?;
        for (comparison, right) in rest {
            let right = self.eval(right)?;
            if !compared(*comparison, &left, &right, &mut self.budget)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Evaluates `and` and `or`, which return the deciding value.
    fn logical(&mut self, all: &[Expr], decides: bool) -> Result<Value, Fault> {
        let mut value = Value::Undefined;
        for expr in all {
            value = self.eval(expr)?;
            if value.is_true() == decides {
                break;
            }
        }
        Ok(value)
    }

    pub(super) fn variable(&mut self, name: &str) -> Result<Value, Fault> {
        let inner = self.scopes.len() - self.base;
        self.budget.pay(STEP + 8 * inner)?;
        let found = self.scopes[self.base..].iter().rev().find_map(|scope| scope.get(name));
        if let Some(value) = found.or_else(|| self.scopes[0].get(name)) {
            return Ok(value.clone());
        }
        Ok(match name {
            "range" => Value::Function(Function::Range),
            "namespace" => Value::Function(Function::Namespace),
            "dict" => Value::Function(Function::Dict),
            "raise_exception" => Value::Function(Function::RaiseException),
            "strftime_now" if self.now.is_some() => Value::Function(Function::StrftimeNow),
            _ => Value::Undefined,
        })
    }

    #[inline(never)]
    pub(super) fn step(&mut self, value: Value, step: &Step) -> Result<Value, Fault> {
        self.budget.pay(STEP)?;
        match step {
            Step::Field(name) => self.field(&value, name),
            Step::Index(index) => {
                let index = self.eval(index)?;
                if let (Value::Namespace(_) | Value::Loop(_), Value::Str(name)) = (&value, &index) {
                    return self.field(&value, name);
                }
                subscript::index(&value, &index, &mut self.budget)
            }
            Step::Slice(bounds) => {
                let mut given = [None; 3];
                for (given, bound) in given.iter_mut().zip(bounds) {
                    *given = match bound {
                        Some(bound) => self.bound(bound)?,
                        None => None,
                    };
                }
                subscript::slice(&value, given, &mut self.budget)
            }
            Step::Call(arguments) => {
                let given = self.given(arguments)?;
                self.call(&value, &given)
            }
            Step::Method(name, arguments) => {
                let given = self.given(arguments)?;
                self.method(&value, name, &given)
            }
            Step::Filter(name, arguments) => {
                let given = self.given(arguments)?;
                filters::apply(self, name, value, &given)
            }
            Step::Test(name, arguments, negated) => {
                let given = self.given(arguments)?;
                Ok(Value::Bool(checks::holds(name, &value, &given.positional, &mut self.budget)? != *negated))
            }
        }
    }

    fn bound(&mut self, bound: &Expr) -> Result<Option<i64>, Fault> {
        match self.eval(bound)? {
            Value::None => Ok(None),
            value => value.as_int().map(Some),
        }
    }

    #[inline(never)]
    fn given(&mut self, arguments: &Arguments) -> Result<Given, Fault> {
        let mut positional = self.all(&arguments.positional)?;
        if let Some(rest) = &arguments.rest {
            let rest = self.eval(rest)?.items(&mut self.budget)?;
            self.budget.pay_each(rest.len(), CELL)?;
            positional.extend(rest.iter().cloned());
        }
        let mut named = Vec::with_capacity(arguments.named.len());
        for (name, value) in &arguments.named {
            self.budget.pay(2 * CELL)?;
            named.push((name.clone(), self.eval(value)?));
        }
        Ok(Given { positional, named })
    }

    /// Returns `value.name`. A missing field is undefined, as in Jinja2; a field of an undefined value is an error.
    pub(super) fn field(&mut self, value: &Value, name: &str) -> Result<Value, Fault> {
        let budget = &mut self.budget;
        Ok(match value {
            Value::Undefined => return Err(Fault::new(format!("an undefined value has no \"{name}\""))),
            // In Python, `map.items` is the method even if there is such a key.
            Value::Map(_) if methods::OF_MAPS.contains(&name) => Value::Function(Function::Method),
            Value::Map(map) => map.get_str(name, budget)?.cloned().unwrap_or_default(),
            Value::Namespace(number) => {
                let fields = self.namespaces.get(*number);
                fields.map_or(Ok(None), |fields| fields.get_str(name, budget))?.cloned().unwrap_or_default()
            }
            Value::Loop(state) => of_loop(state, name),
            _ => Value::Undefined,
        })
    }

    #[inline(never)]
    fn method(&mut self, value: &Value, name: &str, given: &Given) -> Result<Value, Fault> {
        if let Some(result) = methods::call(value, name, given, &mut self.budget)? {
            return Ok(result);
        }
        match self.field(value, name)? {
            Value::Undefined => Err(Fault::new(format!("{} has no method \"{name}\"", value.kind()))),
            function => self.call(&function, given),
        }
    }

    /// Makes a namespace with these fields.
    pub(super) fn new_namespace(&mut self, fields: Map) -> Result<Value, Fault> {
        if self.namespaces.len() == MAX_NAMESPACES {
            return Err(Fault::new(format!("it makes more than {MAX_NAMESPACES} namespaces")));
        }
        self.namespaces.push(fields);
        Ok(Value::Namespace(self.namespaces.len() - 1))
    }

    /// Converts a value to text.
    pub(super) fn text(&mut self, value: &Value) -> Result<String, Fault> {
        text::shown(value, &mut self.budget)
    }
}

/// Returns whether a comparison holds.
pub(super) fn compared(
    comparison: Comparison,
    left: &Value,
    right: &Value,
    budget: &mut Budget,
) -> Result<bool, Fault> {
    Ok(match comparison {
        Comparison::Equal => compare::equal(left, right, budget)?,
        Comparison::NotEqual => !compare::equal(left, right, budget)?,
        Comparison::Less => compare::order(left, right, budget)?.is_some_and(|order| order.is_lt()),
        Comparison::LessOrEqual => compare::order(left, right, budget)?.is_some_and(|order| order.is_le()),
        Comparison::Greater => compare::order(left, right, budget)?.is_some_and(|order| order.is_gt()),
        Comparison::GreaterOrEqual => compare::order(left, right, budget)?.is_some_and(|order| order.is_ge()),
        Comparison::In => compare::contains(right, left, budget)?,
        Comparison::NotIn => !compare::contains(right, left, budget)?,
    })
}

fn of_loop(state: &Loop, name: &str) -> Value {
    let Loop { items, index, outer } = state;
    let left = items.len() - index;
    let item = |at: Option<usize>| at.and_then(|at| List::get(items, at)).cloned().unwrap_or_default();
    match name {
        "index" => Value::Int(*index as i64 + 1),
        "index0" => Value::Int(*index as i64),
        "revindex" => Value::Int(left as i64),
        "revindex0" => Value::Int(left as i64 - 1),
        "first" => Value::Bool(*index == 0),
        "last" => Value::Bool(left == 1),
        "length" => Value::Int(items.len() as i64),
        "depth" => Value::Int(*outer as i64 + 1),
        "depth0" => Value::Int(*outer as i64),
        "previtem" => item(index.checked_sub(1)),
        "nextitem" => item(Some(index + 1)),
        _ => Value::Undefined,
    }
}
