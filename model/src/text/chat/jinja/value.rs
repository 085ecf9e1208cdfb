//! Values of templates. They are immutable except for namespaces, which are referred to by index, so there are no
//! reference cycles.

use std::sync::Arc;

use super::Fault;
use super::budget::{Budget, CELL};

/// Deepest nesting of lists and maps. Functions that traverse them are recursive.
pub(super) const MAX_NESTING: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) enum Value {
    #[default]
    Undefined,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Arc<str>),
    List(Arc<List>),
    Map(Arc<Map>),
    /// A namespace, as an index into those of the rendering.
    Namespace(usize),
    Loop(Arc<Loop>),
    Function(Function),
}

/// A global function or macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Range,
    Namespace,
    Dict,
    RaiseException,
    StrftimeNow,
    /// A method of a map that is read without being called.
    Method,
    /// A macro, as an index into the template's macros.
    Macro(usize),
}

/// A list or a tuple.
#[derive(Debug)]
pub(super) struct List {
    items: Vec<Value>,
    nesting: usize,
    /// Whether it is a tuple, which is shown differently and provides several values for `%`.
    pub is_tuple: bool,
}

/// Pairs in the order of insertion. Maps of templates are small: keys are searched one by one, and the search is paid
/// for.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    pairs: Vec<(Value, Value)>,
    nesting: usize,
}

/// State of a loop during one round: the variable `loop`.
#[derive(Debug)]
pub(super) struct Loop {
    pub items: Arc<List>,
    pub index: usize,
    /// Number of loops around this one.
    pub outer: usize,
}

impl Value {
    pub fn str(text: &str) -> Value {
        Value::Str(text.into())
    }

    pub fn list(items: Vec<Value>) -> Result<Value, Fault> {
        Ok(Value::List(Arc::new(List::new(items)?)))
    }

    pub fn tuple(items: Vec<Value>) -> Result<Value, Fault> {
        Ok(Value::List(Arc::new(List { is_tuple: true, ..List::new(items)? })))
    }

    pub fn map(map: Map) -> Value {
        Value::Map(Arc::new(map))
    }

    fn nesting(&self) -> usize {
        match self {
            Value::List(list) => list.nesting,
            Value::Map(map) => map.nesting,
            Value::Loop(state) => state.items.nesting + 1,
            _ => 0,
        }
    }

    pub fn is_true(&self) -> bool {
        match self {
            Value::Undefined | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(list) => !list.items.is_empty(),
            Value::Map(map) => !map.pairs.is_empty(),
            Value::Namespace(_) | Value::Loop(_) | Value::Function(_) => true,
        }
    }

    /// Returns whether it can be a key of a map.
    pub fn is_key(&self) -> bool {
        matches!(self, Value::Str(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::None)
    }

    /// Returns the name of its type in errors.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Undefined => "an undefined value",
            Value::None => "none",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Namespace(_) => "a namespace",
            Value::Loop(_) => "the loop",
            Value::Function(_) => "a function",
        }
    }

    pub fn as_str(&self) -> Result<&Arc<str>, Fault> {
        match self {
            Value::Str(text) => Ok(text),
            other => Err(Fault::new(format!("a string is needed, not {}", other.kind()))),
        }
    }

    pub fn as_int(&self) -> Result<i64, Fault> {
        match self {
            Value::Int(value) => Ok(*value),
            Value::Bool(value) => Ok(i64::from(*value)),
            other => Err(Fault::new(format!("an integer is needed, not {}", other.kind()))),
        }
    }

    /// Returns the elements that a loop visits. Undefined values and `none` count as empty, since callers may leave
    /// tools out.
    pub fn items(&self, budget: &mut Budget) -> Result<Arc<List>, Fault> {
        let items = match self {
            Value::List(list) => return Ok(list.clone()),
            Value::Undefined | Value::None => Vec::new(),
            Value::Map(map) => {
                budget.pay_each(map.len(), CELL)?;
                map.pairs.iter().map(|(key, _)| key.clone()).collect()
            }
            Value::Str(text) => {
                // Each character is a string of its own, with an allocation.
                budget.pay_each(text.len(), 2 * CELL)?;
                let mut buffer = [0; 4];
                text.chars().map(|c| Value::str(c.encode_utf8(&mut buffer))).collect()
            }
            other => return Err(Fault::new(format!("{} has no elements", other.kind()))),
        };
        Ok(Arc::new(List::new(items)?))
    }
}

impl List {
    /// Makes a list of elements that were paid for.
    pub fn new(items: Vec<Value>) -> Result<List, Fault> {
        let nesting = nested(items.iter())?;
        Ok(List { items, nesting, is_tuple: false })
    }

    pub fn get(&self, at: usize) -> Option<&Value> {
        self.items.get(at)
    }
}

impl std::ops::Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn pairs(&self) -> &[(Value, Value)] {
        &self.pairs
    }

    pub fn get(&self, key: &Value, budget: &mut Budget) -> Result<Option<&Value>, Fault> {
        Ok(self.position(key, budget)?.map(|at| &self.pairs[at].1))
    }

    pub fn get_str(&self, key: &str, budget: &mut Budget) -> Result<Option<&Value>, Fault> {
        budget.pay_each(self.pairs.len(), 2)?;
        for (found, value) in &self.pairs {
            if let Value::Str(text) = found
                && text.len() == key.len()
            {
                budget.pay(key.len())?;
                if **text == *key {
                    return Ok(Some(value));
                }
            }
        }
        Ok(None)
    }

    /// Sets a pair; an existing key keeps its position.
    pub fn set(&mut self, key: Value, value: Value, budget: &mut Budget) -> Result<(), Fault> {
        let nesting = nested([&key, &value].into_iter())?;
        match self.position(&key, budget)? {
            Some(at) => self.pairs[at].1 = value,
            None => {
                budget.pay(2 * CELL)?;
                self.pairs.push((key, value));
            }
        }
        self.nesting = self.nesting.max(nesting);
        Ok(())
    }

    fn position(&self, key: &Value, budget: &mut Budget) -> Result<Option<usize>, Fault> {
        if !key.is_key() {
            return Err(Fault::new(format!("{} cannot be a key", key.kind())));
        }
        for (at, (found, _)) in self.pairs.iter().enumerate() {
            if super::compare::equal(found, key, budget)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// Returns the nesting of a list or map with these elements.
fn nested<'v>(items: impl Iterator<Item = &'v Value>) -> Result<usize, Fault> {
    match items.map(Value::nesting).max().map_or(0, |inner| inner + 1) {
        nesting if nesting > MAX_NESTING => {
            Err(Fault::new(format!("lists and maps are nested more than {MAX_NESTING} deep")))
        }
        nesting => Ok(nesting),
    }
}
