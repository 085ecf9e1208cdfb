//! Hostile templates: programs with hostile values, long chains, deep nesting, text that doubles, and namespaces that
//! contain themselves.

use super::language::{ATOMS, FILTERS, INFIX, METHODS, NAMES, PREFIX, SUFFIX, TESTS};
use super::random::Random;
use super::seeds::with_template;

/// Templates that were harmful once, or look as if they could be. Templates with a number are repeated as often as
/// fits.
pub(super) const CORPUS: &[&str] = &[
    include_str!("corpus/cycle.jinja"),
    include_str!("corpus/doubling.jinja"),
    include_str!("corpus/indent.jinja"),
    include_str!("corpus/macros.jinja"),
    include_str!("corpus/nesting.jinja"),
    include_str!("corpus/products.jinja"),
    include_str!("corpus/roles.jinja"),
    include_str!("corpus/thoughts.jinja"),
    include_str!("corpus/tools.jinja"),
];

/// Makes a file with a hostile template.
pub(super) fn input(seed: u64) -> Vec<u8> {
    with_template(&template(seed))
}

/// Makes a hostile template; the same seed gives the same template.
pub fn template(seed: u64) -> String {
    let mut random = Random(seed);
    match random.below(8) {
        0 => chain(&mut random),
        1 => nest(&mut random),
        2 | 3 => damaged(&mut random),
        _ => {
            let mut program = Program { random, left: 400, out: String::from("{% set x = 'ab' %}") };
            program.out += "{% set ns = namespace(x='cd') %}{% macro f(a, b=1) %}{{ a }}{% endmacro %}";
            for _ in 0..1 + program.random.below(12) {
                program.statement(0);
            }
            program.out
        }
    }
}

/// Makes a chain of one construct, as long as the largest template allows.
fn chain(random: &mut Random) -> String {
    let count = 1usize << random.below(17);
    let atom = random.pick(ATOMS);
    let body = match random.below(4) {
        0 => {
            let link = format!("{}{}", random.pick(INFIX), random.pick(ATOMS));
            format!("{{{{ {atom}{} }}}}", link.repeat(count))
        }
        1 => format!("{{{{ x{} }}}}", random.pick(SUFFIX).repeat(count)),
        2 => format!("{{% if x %}}{}{{% endif %}}", format!("{{% elif {atom} %}}").repeat(count)),
        _ => format!("{{% set x = x {} x %}}", random.pick(INFIX)).repeat(count) + "{{ x|length }}",
    };
    format!("{{% set x = messages %}}{body}")
}

/// Nests one construct in itself.
fn nest(random: &mut Random) -> String {
    let count = 1usize << random.below(17);
    let block = random.pick(&[
        "{% if true %}",
        "{% for x in [1] %}",
        "{% set x %}",
        "{% filter trim %}",
        "{% macro f() %}",
        "{% with %}",
        "{#",
    ]);
    match random.below(3) {
        0 => format!("{{{{ {}1", random.pick(PREFIX).repeat(count)),
        1 => block.repeat(count),
        _ => {
            let wrap = random.pick(&["[ns.x]", "{'a': ns.x}", "[ns.x, ns.x]", "ns", "[ns]", "{'a': ns.x, 'b': ns.x}"]);
            let use_of = random.pick(&["ns.x", "ns.x|tojson", "ns.x == ns.x", "ns", "ns.x|string|length", "ns.x|list"]);
            format!(
                "{{% set ns = namespace(x=[]) %}}{{% for i in range({count}) %}}{{% set ns.x = {wrap} %}}{{% endfor %}}\
                 {{{{ {use_of} }}}}"
            )
        }
    }
}

/// Makes a template of the corpus with parts cut and joined between words.
fn damaged(random: &mut Random) -> String {
    let mut words: Vec<String> = words(random.pick(CORPUS));
    for _ in 0..1 + random.below(4) {
        let at = random.below(words.len());
        match random.below(5) {
            0 => drop(words.remove(at)),
            1 => words.swap(at, 0),
            2 => words.insert(at, random.pick(ATOMS).to_owned()),
            3 => {
                let list = random.pick(&[ATOMS, NAMES]);
                words[at] = random.pick(list).to_owned();
            }
            _ => {
                let to = at + random.below(words.len() - at);
                let copy = words[at..to].concat().repeat(1 << random.below(8));
                words.insert(at, copy);
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

/// Splits a text into words, spaces and signs, which concatenate to the text.
fn words(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in text.chars() {
        match out.last_mut() {
            Some(word) if c.is_alphanumeric() && word.ends_with(char::is_alphanumeric) => word.push(c),
            _ => out.push(c.into()),
        }
    }
    out
}

/// A program under construction.
struct Program {
    random: Random,
    /// Number of expressions that may still be written.
    left: usize,
    out: String,
}

impl Program {
    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth < 6 { 9 } else { 4 }) {
            0 | 1 => self.around("{{ ", " }}"),
            2 => {
                let target = self.random.pick(&["x", "y", "ns.x", "ns", "loop", "messages", "x, y", "f"]);
                self.around(&format!("{{% set {target} = "), " %}");
            }
            3 => self.out += self.random.pick(&["text", "{% break %}", "{{ caller() }}", "{# # #}", "\n  "]),
            4 => {
                self.around("{% if ", " %}");
                self.body(depth, "{% endif %}");
            }
            5 => {
                let items = self.random.pick(&["range(", "(", "x if (", "ns.x, ("]);
                self.around(&format!("{{% for i in {items}"), ") %}");
                self.body(depth, "{% else %}e{% endfor %}");
            }
            6 => {
                self.out += "{% for i in range(100) %}";
                self.body(depth, "{% endfor %}");
            }
            7 => {
                self.out += self.random.pick(&["{% set x %}", "{% set ns.x | indent(9) %}"]);
                self.body(depth, "{% endset %}");
            }
            _ => {
                self.out += self.random.pick(&["{% macro f(a=x, b=f()) %}", "{% macro g(x) %}"]);
                self.body(depth, "{% endmacro %}{{ f(x) }}{{ g(x) }}");
            }
        }
    }

    fn body(&mut self, depth: usize, end: &str) {
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth + 1);
        }
        self.out += end;
    }

    fn around(&mut self, begin: &str, end: &str) {
        self.out += begin;
        self.expr(0);
        self.out += end;
    }

    fn expr(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > 8 {
            self.out += self.random.pick(ATOMS);
            return;
        }
        match self.random.below(12) {
            0 => self.out += self.random.pick(ATOMS),
            1 | 2 => self.out += self.random.pick(NAMES),
            3..6 => {
                self.expr(depth + 1);
                self.out += self.random.pick(INFIX);
                self.expr(depth + 1);
            }
            6 | 7 => {
                self.expr(depth + 1);
                self.out += "|";
                self.out += self.random.pick(FILTERS);
                self.arguments(depth);
            }
            8 => {
                self.out += "x.";
                self.out += self.random.pick(METHODS);
                self.arguments(depth);
            }
            9 => {
                self.expr(depth + 1);
                self.out += self.random.pick(&[" is ", " is not "]);
                self.out += self.random.pick(TESTS);
                self.arguments(depth);
            }
            10 => {
                self.out += self.random.pick(&["f", "range", "namespace", "dict", "loop.cycle", "strftime_now"]);
                self.arguments(depth);
            }
            _ => {
                self.out += self.random.pick(&["(", "x[", "[", "x[::", "not (", "-("]);
                let close = if self.out.ends_with('(') { ")" } else { "]" };
                self.expr(depth + 1);
                self.out += close;
            }
        }
    }

    fn arguments(&mut self, depth: usize) {
        const NAMED: &[&str] =
            &["attribute=", "reverse=", "width=", "indent=", "count=", "start=", "default=", "boolean=", "by=", ""];
        self.out += "(";
        for _ in 0..self.random.below(4) {
            match self.random.below(6) {
                0 => self.out += self.random.pick(NAMED),
                // These filters and tests take names of other ones.
                1 => {
                    let list = self.random.pick(&[FILTERS, TESTS]);
                    self.out += &format!("'{}', ", self.random.pick(list));
                }
                _ => {}
            }
            self.expr(depth + 1);
            self.out += ", ";
        }
        self.out += ")";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{Metadata, Value};
    use crate::text::chat::Message;

    fn failure(source: &str) -> String {
        let mut metadata = Metadata::default();
        metadata.insert("tokenizer.chat_template", Value::String(source.into()));
        let template = crate::ChatTemplate::from_metadata(&metadata);
        match template.and_then(|template| template.render(&[Message::new("user", "U")], true)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_generator_knows_the_language() {
        for name in FILTERS {
            assert!(!failure(&format!("{{{{ 'a'|{name} }}}}")).contains("there is no filter"), "{name}");
        }
        for name in TESTS {
            assert!(!failure(&format!("{{{{ 'a' is {name} }}}}")).contains("there is no test"), "{name}");
        }
        for name in METHODS {
            let called = ["'a'", "[]", "{}"].map(|value| failure(&format!("{{{{ {value}.{name}() }}}}")));
            let in_loop = failure(&format!("{{% for i in [1] %}}{{{{ loop.{name}() }}}}{{% endfor %}}"));
            let known = |error: &String| !error.contains("has no method");
            assert!(called.iter().any(known) || known(&in_loop), "{name}");
        }
    }
}
