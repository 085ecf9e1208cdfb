//! Patterns of schemas, rewritten so that the library enforces them.
//!
//! The library treats a class with all control characters as if it also had quotes and backslashes. It leaves out a
//! control character of a text if its escape is not allowed. So classes are written without the characters that answers
//! never have, and a text with such a character is refused.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassPerlKind, ClassSet, ClassSetItem, Flag, FlagsItemKind, GroupKind,
};
use regex_syntax::hir::print::Printer;
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

/// Most levels of groups in a pattern.
const MAX_NEST: u32 = 50;
/// Most bytes of a rewritten pattern: Unicode classes are long.
const MAX_WRITTEN: usize = 64 << 10;

/// Characters that answers never have: JSON can escape them only with `\u`, which the library does not write.
const UNWRITABLE: [(char, char); 4] = [('\0', '\x07'), ('\x0b', '\x0b'), ('\x0e', '\x1f'), ('\x7f', '\x7f')];

/// The two readings of a class: characters that it has in both ECMA-262 and Python, and those that it has in at least
/// one.
struct Bounds {
    all: &'static str,
    any: &'static str,
}

const DIGIT: Bounds = Bounds { all: "[0-9]", any: r"[\p{Nd}]" };
const WORD: Bounds = Bounds { all: "[0-9A-Za-z_]", any: r"[\w\p{L}\p{N}]" };
const SPACE: Bounds = Bounds {
    all: r"[\t-\r \xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000]",
    any: r"[\t-\r\x1C-\x20\x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF]",
};
const SPACE_OF_ECMA: &str = r"[\t-\r \xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF]";
const DOT: &str = r"[^\n\r\u2028\u2029]";

/// Use of a pattern.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Use {
    /// Constrains a string, in the readings of both ECMA-262 and Python.
    Value,
    /// Selects keys, in the reading of ECMA-262.
    Key,
}

/// Returns whether answers can have a character.
pub(crate) fn is_writable(c: char) -> bool {
    !UNWRITABLE.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Rewrites a pattern for the library.
///
/// *Errors*: the reason why the pattern cannot be enforced.
pub(crate) fn written(pattern: &str, asked: Use) -> Result<String, String> {
    let mut ast = parse(pattern)?;
    Plain { asked }.part(&mut ast)?;
    let error = |error: regex_syntax::hir::Error| format!("is not a regular expression: {}", error.kind());
    let hir = writable(&Translator::new().translate(pattern, &ast).map_err(error)?)?;
    let mut written = String::new();
    Printer::new().print(&hir, &mut written).map_err(|_| "cannot be written".to_owned())?;
    if written.len() > MAX_WRITTEN {
        return Err(format!("takes {} bytes with its classes of Unicode, and may take {MAX_WRITTEN}", written.len()));
    }
    Ok(written)
}

/// Returns the only text that a pattern of [`written`] matches, if there is just one.
pub(crate) fn only_text(written: &str) -> Option<String> {
    let hir = regex_syntax::parse(written).ok()?;
    let HirKind::Concat(parts) = hir.kind() else { return None };
    match [parts.first()?.kind(), parts.get(1)?.kind(), parts.last()?.kind()] {
        [HirKind::Look(Look::Start), HirKind::Literal(literal), HirKind::Look(Look::End)] if parts.len() == 3 => {
            String::from_utf8(literal.0.to_vec()).ok()
        }
        _ => None,
    }
}

fn parse(pattern: &str) -> Result<Ast, String> {
    let parsed = ParserBuilder::new().nest_limit(MAX_NEST).build().parse(pattern);
    parsed.map_err(|error| format!("cannot be held to: {}; use a simpler one", error.kind()))
}

/// Replaces the parts of a pattern that have different meanings elsewhere.
struct Plain {
    asked: Use,
}

impl Plain {
    fn part(&self, ast: &mut Ast) -> Result<(), String> {
        match ast {
            Ast::Empty(_) | Ast::Literal(_) | Ast::ClassUnicode(_) => Ok(()),
            Ast::Flags(flags) => known_flags(&flags.flags),
            Ast::Dot(_) => {
                *ast = Ast::ClassBracketed(Box::new(class(DOT)?));
                Ok(())
            }
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::StartLine | AssertionKind::EndLine => Ok(()),
                _ => {
                    Err("has an anchor other than ^ and $; remove it and validate that part of the answer yourself"
                        .into())
                }
            },
            Ast::ClassPerl(perl) => {
                *ast = Ast::ClassBracketed(Box::new(self.perl(perl, false)?));
                Ok(())
            }
            Ast::ClassBracketed(bracketed) => {
                let negated = bracketed.negated;
                match &mut bracketed.kind {
                    ClassSet::Item(item) => self.item(item, negated),
                    ClassSet::BinaryOp(_) => {
                        Err("has &&, -- or ~~ in a class, which schemas do not have; escape them".into())
                    }
                }
            }
            Ast::Repetition(repetition) => self.part(&mut repetition.ast),
            Ast::Group(group) => {
                // The name of a group may have a meaning for the library.
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    known_flags(flags)?;
                } else {
                    group.kind = GroupKind::NonCapturing(ast::Flags { span: group.span, items: Vec::new() });
                }
                self.part(&mut group.ast)
            }
            Ast::Alternation(alternation) => alternation.asts.iter_mut().try_for_each(|ast| self.part(ast)),
            Ast::Concat(concat) => concat.asts.iter_mut().try_for_each(|ast| self.part(ast)),
        }
    }

    fn item(&self, item: &mut ClassSetItem, negated: bool) -> Result<(), String> {
        match item {
            ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Range(_) | ClassSetItem::Unicode(_) => {
                Ok(())
            }
            ClassSetItem::Ascii(_) | ClassSetItem::Bracketed(_) => Err(r"has [ in a class; write it \[".into()),
            ClassSetItem::Perl(perl) => {
                *item = ClassSetItem::Bracketed(Box::new(self.perl(perl, negated)?));
                Ok(())
            }
            ClassSetItem::Union(union) => union.items.iter_mut().try_for_each(|item| self.item(item, negated)),
        }
    }

    /// Returns the characters of `\d` and similar classes. `negated` says whether the class around it is negated.
    fn perl(&self, perl: &ast::ClassPerl, negated: bool) -> Result<ast::ClassBracketed, String> {
        let bounds = match perl.kind {
            ClassPerlKind::Digit => DIGIT,
            ClassPerlKind::Space => SPACE,
            ClassPerlKind::Word => WORD,
        };
        let mut class = class(match (self.asked, &perl.kind) {
            (Use::Key, ClassPerlKind::Space) => SPACE_OF_ECMA,
            (Use::Value, _) if negated != perl.negated => bounds.any,
            _ => bounds.all,
        })?;
        class.negated = perl.negated;
        Ok(class)
    }
}

fn class(text: &str) -> Result<ast::ClassBracketed, String> {
    match &parse(text)? {
        Ast::ClassBracketed(class) => Ok(class.as_ref().clone()),
        _ => Err("has a class that is not known".into()),
    }
}

/// Checks flags. Only `i` (ignore case) is allowed. Others change meanings in ways that schemas do not have.
fn known_flags(flags: &ast::Flags) -> Result<(), String> {
    let known = |item: &ast::FlagsItem| matches!(item.kind, FlagsItemKind::Flag(Flag::CaseInsensitive));
    if flags.items.iter().all(known) { Ok(()) } else { Err("sets a flag other than i; leave it out".into()) }
}

/// Removes the characters that answers never have from an expression.
fn writable(hir: &Hir) -> Result<Hir, String> {
    let each = |parts: &[Hir]| parts.iter().map(writable).collect::<Result<Vec<_>, _>>();
    Ok(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            if let Some(c) = text.chars().find(|c| !is_writable(*c)) {
                return Err(format!("asks for the control character {c:?}, which answers do not have"));
            }
            Hir::literal(literal.0.clone())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new(UNWRITABLE.map(|(first, last)| ClassUnicodeRange::new(first, last))));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(_)) => return Err("has a class of bytes".into()),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub: Box::new(writable(sub)?) })
        }
        HirKind::Capture(capture) => writable(&capture.sub)?,
        HirKind::Concat(parts) => Hir::concat(each(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)?),
    })
}
