//! Comparison of published chat templates with `transformers`: `tests/templates/README.md` lists their sources, and how
//! the expected texts were made.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use serde_json::Value;

use super::*;

/// Time of the script's clock: 2026-07-26, 13:05:09.
const NOW: i64 = 1_785_071_109;

#[derive(Deserialize)]
pub(super) struct Published {
    pub source: String,
    expected: Vec<Expected>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Text(String),
    /// Message of the template's `raise_exception`.
    Raised(String),
    /// Error of Python or Jinja2.
    Error(String),
}

#[derive(Deserialize)]
struct Conversation {
    name: String,
    messages: Vec<Value>,
    /// Number of tools to give, from the list of all tools.
    tools: Option<usize>,
    #[serde(default = "yes")]
    add_generation_prompt: bool,
    #[serde(default)]
    variables: BTreeMap<String, Value>,
}

fn yes() -> bool {
    true
}

/// Reads all templates, by name.
pub(super) fn published() -> BTreeMap<String, Published> {
    let mut json = String::new();
    let packed = &include_bytes!("../../../tests/templates/corpus.json.gz")[..];
    flate2::read::GzDecoder::new(packed).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn conversations() -> Vec<Conversation> {
    serde_json::from_str(include_str!("../../../tests/templates/conversations.json")).unwrap()
}

/// Makes a message with its fields unchanged.
fn turn(value: &Value) -> Message {
    let mut message = Message::new(value["role"].as_str().unwrap(), value["content"].as_str().unwrap_or_default());
    for (name, field) in value.as_object().unwrap() {
        if name != "role" && !(name == "content" && field.is_string()) {
            message = message.with(name, field.clone());
        }
    }
    message
}

/// Renders a conversation without adapting it to the template.
fn rendered(source: &str, conversation: &Conversation) -> Result<String, ChatError> {
    let mut chat = tests::template(source)?;
    chat.set_now(NOW);
    for (name, value) in &conversation.variables {
        chat.set_variable(name, value);
    }
    if let Some(count) = conversation.tools {
        let tools: Vec<Value> = serde_json::from_str(include_str!("../../../tests/templates/tools.json")).unwrap();
        chat.set_variable("tools", &tools[..count].into());
    }
    let messages: Vec<Message> = conversation.messages.iter().map(turn).collect();
    chat.rendered(&messages, conversation.add_generation_prompt, jinja::WORK)
}

/// Errors of Python that do not occur here. A loop over `none` has no rounds, since callers leave tools out. Filters
/// return lists, which JSON can represent, and not generators.
const LENIENT: [&str; 2] = ["'NoneType' object is not iterable", "Object of type generator is not JSON serializable"];

/// Template that joins text marked as `safe` with JSON, which Jinja2 then escapes as HTML. That is a mistake of the
/// template.
const ESCAPED: &str = "llama-cpp-python/meetkai-functionary-medium-v3.1";

/// Undoes that escaping.
fn unescaped(text: &str) -> String {
    let marks = [("&#34;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, c)| text.replace(mark, c))
}

/// Describes how a rendering differs from the expected one.
fn difference(ours: &Result<String, ChatError>, expected: &Expected) -> Option<String> {
    match (ours, expected) {
        (Ok(ours), Expected::Text(text)) if ours == text => None,
        (Ok(ours), Expected::Text(text)) => {
            let same = ours.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
            let near = |text: &str| text.chars().skip(same.saturating_sub(40)).take(120).collect::<String>();
            Some(format!("after {same} characters\n     ours {:?}\n expected {:?}", near(ours), near(text)))
        }
        (Err(error), Expected::Text(_)) => Some(format!("ours fails: {error}")),
        (Err(error), Expected::Raised(words)) if error.to_string().contains(words) => None,
        (Err(_), Expected::Error(_)) => None,
        (Ok(_), Expected::Error(error)) if LENIENT.iter().any(|known| error.contains(known)) => None,
        (ours, Expected::Raised(words)) => Some(format!("{ours:?} and not what it raises: {words}")),
        (Ok(ours), Expected::Error(error)) => Some(format!("{ours:?} and not the error: {error}")),
    }
}

#[test]
fn published_templates_render_as_with_transformers() {
    let (published, conversations) = (published(), conversations());
    assert!(published.len() > 100 && conversations.len() > 10, "the corpus is small");
    let mut found = Vec::new();
    for (name, template) in &published {
        assert_eq!(template.expected.len(), conversations.len(), "make.py has to run again");
        for (conversation, expected) in conversations.iter().zip(&template.expected) {
            let ours = rendered(&template.source, conversation);
            let meant = match expected {
                Expected::Text(text) if name == ESCAPED && conversation.tools.is_some() => {
                    &Expected::Text(unescaped(text))
                }
                expected => expected,
            };
            found.extend(difference(&ours, meant).map(|how| format!("{name}, {}: {how}", conversation.name)));
        }
    }
    let rows = published.len() * conversations.len();
    assert!(found.is_empty(), "{} of {rows} differ:\n{}", found.len(), found.join("\n"));
}

/// Describes which text of a conversation the prompt does not contain, or the error.
fn lost(chat: &ChatTemplate, messages: &[(&str, &str)]) -> Option<String> {
    let turns: Vec<Message> = messages.iter().map(|(role, text)| Message::new(*role, *text)).collect();
    match chat.render(&turns, true) {
        Ok(prompt) => messages.iter().find(|(_, text)| !prompt.contains(text)).map(|(role, _)| format!("lost {role}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Templates that need variables or tools of their own to show a conversation.
const OWN_WAYS: [&str; 1] = ["llama-cpp-python/fireworks-ai-llama-3-firefunction-v2"];

#[test]
fn published_templates_lose_no_text_and_no_role() {
    let mut found = Vec::new();
    for (name, template) in published() {
        if OWN_WAYS.contains(&&*name) {
            continue;
        }
        let mut chat = tests::template(&template.source).unwrap();
        chat.set_now(NOW);
        for role in ["system", "developer"] {
            let turns =
                [(role, "Be brief."), ("user", "Why is the sky blue?"), ("assistant", "So it is."), ("user", "Go on.")];
            found.extend(lost(&chat, &turns).map(|how| format!("{name}, {role}: {how}")));
        }
        let narrator = chat.render(&[Message::new("narrator", "It is night."), Message::new("user", "Go on.")], true);
        if narrator != Err(ChatError::Role("narrator".into())) {
            found.push(format!("{name}: {narrator:?}"));
        }
    }
    assert!(found.is_empty(), "{} are lost:\n{}", found.len(), found.join("\n"));
}
