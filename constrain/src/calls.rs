//! Grammar of answers that must call functions.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::TokTrie;
use model::CallForm;

use crate::before::{Texts, quoted};
use crate::error::FormatError;
use crate::schema;

/// Returns the grammar of the calls, and of the reasoning before them if there may be some. Marks that are single
/// tokens are written as tokens.
///
/// *Errors*: a schema of arguments that cannot be enforced.
pub(crate) fn grammar(form: &CallForm, tokens: &TokTrie) -> Result<TopLevelGrammar, FormatError> {
    let texts = Texts::new(form.thoughts.iter().flat_map(|(begin, end)| [begin, end]).chain(&form.marks), tokens);
    let text = |text: &str| texts.literal(text);
    let (mut start, mut rules) = (Vec::new(), String::new());
    if let Some((begin, end)) = &form.thoughts {
        let (thoughts, begun) = texts.thoughts(begin, end, form.thinking);
        rules += &thoughts;
        start.push(begun);
    }
    start.push(text(&form.around.0));
    start.push("call".into());
    if let Some(between) = &form.between {
        start.push(format!("({} call)*", text(between)));
    }
    start.push(text(&form.around.1));
    let (before, arguments, behind) = &form.call;
    let mut names = Vec::new();
    for (at, (name, parameters)) in form.functions.iter().enumerate() {
        let name = quoted(name);
        let begin = text(&format!("{before}{}{arguments}", &name[1..name.len() - 1]));
        let object = schema::document(parameters)?;
        rules += &format!("call_{at}: {begin} arguments_{at} {}\narguments_{at}: %json {object}\n", text(behind));
        names.push(format!("call_{at}"));
    }
    Ok(TopLevelGrammar::from_lark(format!("start: {}\ncall: {}\n{rules}", start.join(" "), names.join(" | "))))
}
