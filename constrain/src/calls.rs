//! The grammar of answers that must call functions.

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::TokTrie;
use model::CallForm;
use serde_json::Value;

use crate::error::FormatError;
use crate::schema;

/// The grammar of thoughts, if there may be some, and of the calls after them. Marks that are tokens of their own are written
/// as such.
///
/// *Errors*: a schema of arguments that answers cannot be held to.
pub(crate) fn grammar(form: &CallForm, tokens: &TokTrie) -> Result<TopLevelGrammar, FormatError> {
    let named = form.thoughts.iter().flat_map(|(begin, end)| [begin, end]).chain(&form.marks);
    let marks: Vec<_> = named.filter_map(|mark| Some((mark.as_str(), tokens.get_special_token(mark)?))).collect();
    let text = |text: &str| literal(text, &marks);
    let (mut start, mut rules) = (Vec::new(), String::new());
    if let Some((begin, end)) = &form.thoughts {
        // What is thought is any text up to the mark.
        match tokens.get_special_token(end) {
            Some(id) => rules += &format!("thoughts: /(?s:.)*/ <[{id}]> BREAK?\n"),
            None => rules += &format!("thoughts: until BREAK?\nuntil[lazy]: UNTIL\nUNTIL: /(?s:.)*/ {}\n", quoted(end)),
        }
        rules += "BREAK: /[ \\n]{1,4}/\n";
        start.push(if form.thinking { "thoughts".into() } else { format!("({} thoughts)?", text(begin)) });
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

/// A text as a grammar has it: marks that are tokens of their own, and strings between them.
fn literal(text: &str, marks: &[(&str, u32)]) -> String {
    let found = marks.iter().filter_map(|(mark, id)| Some((text.find(mark)?, *mark, *id))).min();
    match found {
        Some((at, mark, id)) => {
            let [before, behind] = [&text[..at], &text[at + mark.len()..]].map(|part| literal(part, marks));
            format!("{before} <[{id}]> {behind}")
        }
        None if text.is_empty() => String::new(),
        None => quoted(text),
    }
}

/// Quoted as JSON quotes texts.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
