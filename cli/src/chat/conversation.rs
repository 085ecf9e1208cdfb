//! Conversations, in memory and in files.

use crate::{saved, text};
use anygpu::Message;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

/// A conversation in a file. Other programs use this form of messages as well.
#[derive(Debug, Serialize, Deserialize)]
struct Saved<'a> {
    messages: Vec<Said<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Said<'a> {
    role: Cow<'a, str>,
    content: Cow<'a, str>,
}

/// A conversation: a system prompt, and turns of the user and the assistant.
#[derive(Debug, Default, PartialEq)]
pub struct Conversation {
    system: Option<String>,
    /// The turns of the user and the assistant, which alternate.
    turns: Vec<Message>,
}

impl Conversation {
    /// Creates an empty conversation, with a system prompt unless that is empty.
    pub fn new(system: &str) -> Conversation {
        let mut new = Conversation::default();
        new.set_system(system);
        new
    }

    /// Sets the system prompt; an empty one removes it.
    pub fn set_system(&mut self, text: &str) {
        self.system = (!text.is_empty()).then(|| text.to_owned());
    }

    /// Removes everything but the system prompt.
    pub fn reset(&mut self) {
        self.turns.clear();
    }

    /// Adds a message.
    pub fn say(&mut self, role: &str, content: &str) {
        self.turns.push(Message::new(role, content));
    }

    /// Removes the last message.
    pub fn unsay(&mut self) {
        self.turns.pop();
    }

    /// Removes and returns the last answer, if there is one, so that its message can be answered again.
    pub fn unanswer(&mut self) -> Option<String> {
        self.turns.pop_if(|last| last.role == "assistant").map(|last| last.content)
    }

    /// Returns the number of messages, without the system prompt.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns all messages, the system prompt first.
    pub fn messages(&self) -> Vec<Message> {
        let system = self.system.iter().map(|text| Message::new("system", &**text));
        system.chain(self.turns.iter().cloned()).collect()
    }

    /// Writes the conversation to a file.
    ///
    /// *Errors*: the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let messages = self.messages();
        let said = |m: &'_ Message| Said { role: m.role.clone().into(), content: m.content.clone().into() };
        let mut json = serde_json::to_string_pretty(&Saved { messages: messages.iter().map(said).collect() })?;
        json.push('\n');
        saved::replace(path, json.as_bytes()).with_context(|| format!("cannot write {path:?}"))
    }

    /// Reads a conversation from a file.
    ///
    /// *Errors*: the file cannot be read, or is not a conversation.
    pub fn load(path: &Path) -> Result<Conversation> {
        let file = File::open(path).with_context(|| format!("cannot open {path:?}"))?;
        let json = text::read(file, &format!("{path:?}"))?;
        let read = serde_json::from_str(&json).map_err(anyhow::Error::from);
        let read = read.and_then(|Saved { messages }: Saved<'_>| Conversation::of(messages));
        read.with_context(|| format!("{path:?} is not a conversation that /save wrote"))
    }

    fn of(messages: Vec<Said<'_>>) -> Result<Conversation> {
        let mut read = Conversation::default();
        for Said { role, content } in messages {
            match &*role {
                "system" if read == Conversation::default() => read.set_system(&content),
                "user" | "assistant" => read.say(&role, &content),
                "system" => bail!("a message of the system is not the first"),
                _ => bail!("a message is of {role:?}, and not of system, user or assistant"),
            }
        }
        if read.turns.last().is_some_and(|last| last.role == "user") {
            bail!("its last message was not answered");
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(json: &str) -> Result<Conversation> {
        Conversation::of(serde_json::from_str::<Saved<'_>>(json)?.messages)
    }

    #[test]
    fn what_was_saved_is_read_again() {
        let path = std::env::temp_dir().join(format!("anygpu-conversation-{}.json", std::process::id()));
        for system in ["", "You are a \"cat\"."] {
            let mut said = Conversation::new(system);
            for text in ["Why?", "a\nb\u{1f999}"] {
                said.say("user", text);
                said.say("assistant", "So.");
            }
            said.save(&path).unwrap();
            assert_eq!(Conversation::load(&path).unwrap(), said);
        }
        std::fs::write(&path, b"\xff").unwrap();
        assert!(format!("{:#}", Conversation::load(&path).unwrap_err()).contains("UTF-8"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_no_conversation_is_refused() {
        for json in [
            "",
            "{}",
            r#"{"messages": [{"role": "user", "content": "a"}]}"#,
            r#"{"messages": [{"role": "cat", "content": "a"}]}"#,
            r#"{"messages": [{"role": "user", "content": ["a"]}]}"#,
            r#"{"messages": [{"role": "assistant", "content": "a"}, {"role": "system", "content": "a"}]}"#,
        ] {
            assert!(load(json).is_err(), "{json}");
        }
        assert_eq!(load(r#"{"model": "m", "messages": []}"#).unwrap(), Conversation::default());
    }
}
