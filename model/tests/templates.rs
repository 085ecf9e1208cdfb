//! Comparison of chat templates with another implementation of Jinja2.
//!
//! With `ANYGPU_TEMPLATES=DIR`, all `*.jinja` files of a folder are compared as well, such as publishers' templates.

use std::collections::BTreeMap;
use std::{env, fs};

use anygpu_model::chat::{ChatTemplate, Message};
use anygpu_model::gguf::{Metadata, Value};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{AutoEscape, Environment, Error, ErrorKind};
use serde_json::json;

/// Makes conversations that templates render differently.
fn conversations() -> Vec<Vec<Message>> {
    let turns = |list: &[(&str, &str)]| list.iter().map(|(role, text)| Message::new(*role, *text)).collect();
    vec![
        turns(&[("user", "Why is the sky blue?")]),
        turns(&[("system", "  Be brief.\n"), ("user", "U")]),
        turns(&[("user", " a\n b "), ("assistant", "<think>\nhm\n</think>\n\nA"), ("user", "V \"quoted\" \\ {{ x }}")]),
        turns(&[("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "ünï'\n")]),
        turns(&[("assistant", "first"), ("user", "second"), ("user", "third")]),
    ]
}

fn ours(source: &str, messages: &[Message], generate: bool) -> Result<String, String> {
    let mut metadata = Metadata::default();
    metadata.insert("tokenizer.chat_template", Value::String(source.into()));
    metadata
        .insert("tokenizer.ggml.tokens", Value::Strings(std::sync::Arc::new(["<bos>", "<eos>"].into_iter().collect())));
    metadata.insert("tokenizer.ggml.bos_token_id", Value::Uint(0));
    metadata.insert("tokenizer.ggml.eos_token_id", Value::Uint(1));
    let mut template = ChatTemplate::from_metadata(&metadata).map_err(|e| e.to_string())?;
    template.set_variable("user", &variables()["user"]);
    template.render(messages, generate).map_err(|e| e.to_string())
}

fn variables() -> BTreeMap<&'static str, serde_json::Value> {
    BTreeMap::from([("user", json!({"name": "ann", "tags": ["b", "a", "b"], "age": 7, "ratio": 0.5, "on": true}))])
}

fn theirs(source: &str, messages: &[Message], generate: bool) -> Result<String, String> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().unwrap());
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |text: &str| -> Result<minijinja::Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, text.to_owned()))
    });
    // Unit tests check the filter of templates with tools.
    environment.add_filter("tojson", |value: minijinja::Value, options: Kwargs| -> Result<String, Error> {
        let _: Option<usize> = options.get("indent")?;
        serde_json::to_string(&value).map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))
    });
    let source = source.replace("{% generation %}", "{% if true %}").replace("{% endgeneration %}", "{% endif %}");
    let source = source.replace("{%- generation %}", "{%- if true %}").replace("{%- endgeneration %}", "{%- endif %}");
    let source = source.replace("{%- generation -%}", "{%- if true -%}");
    let source = source.replace("{%- endgeneration -%}", "{%- endif -%}");
    environment.add_template_owned("t", source).map_err(|e| e.to_string())?;
    let mut given = vec![
        ("messages", minijinja::Value::from(Serde(messages))),
        ("bos_token", "<bos>".into()),
        ("eos_token", "<eos>".into()),
        ("user", minijinja::Value::from(Serde(&variables()["user"]))),
    ];
    if generate {
        given.push(("add_generation_prompt", true.into()));
    }
    let template = environment.get_template("t").map_err(|e| e.to_string())?;
    template.render(minijinja::Value::from_pairs(given)).map_err(|e| e.to_string())
}

/// Describes the difference: another text, or an error of only one implementation. With `lenient`, the other one may
/// fail alone, since it refuses some expressions that Python allows.
fn differs(source: &str, lenient: bool) -> Option<String> {
    for messages in conversations() {
        for generate in [true, false] {
            let (ours, theirs) = (ours(source, &messages, generate), theirs(source, &messages, generate));
            let same = match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => ours == theirs,
                (Err(_), Err(_)) => true,
                (Ok(_), Err(_)) => lenient,
                _ => false,
            };
            if !same {
                return Some(format!("\n   ours {ours:?}\n theirs {theirs:?}"));
            }
        }
    }
    None
}

#[test]
fn snippets_render_as_elsewhere() {
    let found: Vec<String> = include_str!("snippets.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .filter_map(|line| {
            let source = line.replace("⏎", "\n");
            differs(&source, false).map(|how| format!("{line}{how}"))
        })
        .collect();
    assert!(found.is_empty(), "{} differ:\n{}", found.len(), found.join("\n"));
}

#[test]
fn published_templates_render_as_elsewhere() {
    let Ok(folder) = env::var("ANYGPU_TEMPLATES") else {
        println!("SKIPPED published templates: ANYGPU_TEMPLATES names no folder");
        return;
    };
    let mut count = 0;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jinja") {
            continue;
        }
        count += 1;
        // Jinja2 normalizes all line breaks.
        let source = fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
        found.extend(differs(&source, true).map(|how| format!("{}{how}", path.display())));
    }
    assert!(found.is_empty(), "{} of {count} differ:\n{}", found.len(), found.join("\n"));
    println!("{count} templates render the same");
}
