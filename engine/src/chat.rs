//! Conversations that outgrow the context: their oldest turns are left out.

use model::{ChatTemplate, GenerateOptions, Message, ModelError, Overflow, Parts, Tokenizer};

use crate::error::EngineError;

/// A conversation as a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPrompt {
    /// The prompt's tokens, up to where the assistant's answer begins.
    pub tokens: Vec<u32>,
    /// Number of first tokens that hold for all turns (the template's preamble and the system messages). They stay when
    /// older tokens are dropped to make room.
    pub keep: usize,
    /// Messages that were left out.
    pub dropped_messages: usize,
}

/// Makes the prompt of a conversation; see [`Engine::chat_prompt`].
pub(crate) fn prompt(
    chat: &ChatTemplate,
    tokenizer: &Tokenizer,
    n_ctx: usize,
    messages: &[Message],
    options: &GenerateOptions,
) -> Result<ChatPrompt, EngineError> {
    match options.overflow {
        Overflow::Shift { .. } => fit(chat, tokenizer, messages, options.most().min(n_ctx / 2), n_ctx),
        Overflow::Error | Overflow::Stop => {
            Ok(ChatPrompt { tokens: chat.encode(tokenizer, messages, true)?, keep: 0, dropped_messages: 0 })
        }
    }
}

/// Tokenizes a text. An empty text becomes the token that begins a text (BOS), if the model has one.
pub(crate) fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let mut tokens = tokenizer.encode(text, true, true);
    if tokens.is_empty() {
        tokens.extend(tokenizer.bos());
    }
    tokens
}

/// Number of last tokens of a prompt that may contain the beginning of the answer, such as an opened thought.
const ENDING: usize = 32;

/// Makes the parser of an answer; see [`Engine::answer_parts`].
pub(crate) fn answer_parts(chat: &ChatTemplate, tokenizer: &Tokenizer, prompt: &[u32]) -> Parts {
    let ending = &prompt[prompt.len().saturating_sub(ENDING)..];
    chat.parts(&tokenizer.decode(ending, true))
}

pub(crate) fn fit(
    chat: &ChatTemplate,
    tokenizer: &Tokenizer,
    messages: &[Message],
    room: usize,
    n_ctx: usize,
) -> Result<ChatPrompt, EngineError> {
    let (system, turns) = split(messages);
    let without = |dropped: usize| {
        let left: Vec<Message> = system.iter().chain(turns[dropped..].iter().copied().flatten()).cloned().collect();
        chat.encode(tokenizer, &left, true)
    };
    let fits = |tokens: &[u32]| tokens.len() + room <= n_ctx;
    let (mut tokens, mut dropped) = (without(0)?, 0);
    let last = turns.len().saturating_sub(1);
    if !fits(&tokens) && last > 0 {
        // Binary search for the fewest turns that suffice: each attempt renders the whole conversation, which may be
        // long.
        let (mut few, mut enough) = (1, last);
        while few < enough {
            let middle = few.midpoint(enough);
            if fits(&without(middle)?) { enough = middle } else { few = middle + 1 }
        }
        (tokens, dropped) = (without(enough)?, enough);
    }
    if tokens.len() >= n_ctx {
        return Err(ModelError::ContextFull { tokens: tokens.len(), used: 0, n_ctx }.into());
    }
    let keep = common(&head(chat, tokenizer, system), &tokens).max(kept(tokenizer, &tokens));
    let dropped_messages = turns[..dropped].iter().map(|turn| turn.len()).sum();
    Ok(ChatPrompt { tokens, keep, dropped_messages })
}

/// Splits messages into the system messages at the beginning and the turns after them.
fn split(messages: &[Message]) -> (&[Message], Vec<&[Message]>) {
    let stays = |message: &&Message| matches!(message.role.as_str(), "system" | "developer");
    let (system, rest) = messages.split_at(messages.iter().take_while(stays).count());
    (system, rest.chunk_by(|_, next| next.role != "user").collect())
}

/// Returns the tokens that all prompts with these system messages begin with. A few more may follow that other prompts
/// do not have.
fn head(chat: &ChatTemplate, tokenizer: &Tokenizer, system: &[Message]) -> Vec<u32> {
    let text = chat.render(system, false).unwrap_or_default();
    let alone = system.iter().all(|message| text.contains(message.content.trim()));
    // Some templates render system messages only within the first message of the user.
    let messages = if alone { system.to_vec() } else { [system, &[Message::new("user", "")]].concat() };
    chat.encode(tokenizer, &messages, false).unwrap_or_default()
}

/// Returns the length of the common beginning.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the number of first tokens that stay by default when older tokens are dropped: 1 if the text begins with the
/// token that begins a text (BOS), otherwise 0.
pub(crate) fn kept(tokenizer: &Tokenizer, tokens: &[u32]) -> usize {
    usize::from(tokenizer.bos().is_some() && tokenizer.bos() == tokens.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::gguf::Value;
    use model::{Gguf, Metadata};

    const GAB: &[u8] = include_bytes!("../../models/gab-q4_0.gguf");

    fn tokenizer() -> Tokenizer {
        Tokenizer::from_metadata(&Gguf::from_bytes(GAB).unwrap().metadata).unwrap()
    }

    fn chat(template: &str) -> ChatTemplate {
        let mut metadata = Metadata::default();
        metadata.insert("tokenizer.chat_template", Value::String(template.into()));
        ChatTemplate::from_metadata(&metadata).unwrap()
    }

    /// Renders each message as its role in brackets and its content.
    const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}\
                         {% if add_generation_prompt %}[assistant]{% endif %}";
    /// Renders the system prompt within the first message of the user, and requires roles to alternate.
    const FOLDED: &str = "{% set ns = namespace(first='', messages=messages) %}\
        {% if messages and messages[0].role == 'system' %}\
        {% set ns.first = messages[0].content + '\n' %}{% set ns.messages = messages[1:] %}{% endif %}\
        {% for m in ns.messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}\
        {{ raise_exception('roles must alternate') }}{% endif %}\
        [{{ m.role }}]{{ ns.first if loop.first else '' }}{{ m.content }}\n{% endfor %}\
        {% if add_generation_prompt %}[assistant]{% endif %}";

    fn conversation(turns: usize) -> Vec<Message> {
        let mut messages = vec![Message::new("system", "You tell stories.")];
        for turn in 0..turns {
            messages.push(Message::new("user", format!("Question {turn}: what did the dragon do?")));
            messages.push(Message::new("assistant", format!("Answer {turn}: it went to the park with Tom.")));
        }
        messages.push(Message::new("user", "And then?"));
        messages
    }

    #[test]
    fn the_fewest_whole_turns_make_room() {
        let tokenizer = tokenizer();
        for template in [PLAIN, FOLDED] {
            let (chat, messages) = (chat(template), conversation(6));
            let tokens = |messages: &[Message]| chat.encode(&tokenizer, messages, true).unwrap();
            let left = |dropped: usize| [&messages[..1], &messages[1 + dropped..]].concat();
            for n_ctx in tokens(&left(12)).len() + 20..tokens(&messages).len() + 30 {
                let fitted = fit(&chat, &tokenizer, &messages, 20, n_ctx).unwrap();
                let dropped = fitted.dropped_messages;
                assert_eq!(dropped % 2, 0, "whole turns");
                assert_eq!(fitted.tokens, tokens(&left(dropped)));
                assert!(fitted.tokens.len() + 20 <= n_ctx, "{n_ctx}");
                assert!(
                    dropped == 0 || tokens(&left(dropped - 2)).len() + 20 > n_ctx,
                    "{n_ctx}: no more than it takes"
                );
                let kept = tokenizer.decode(&fitted.tokens[..fitted.keep], false);
                assert!(kept.contains("You tell stories") && !kept.contains("Question"), "{kept}");
            }
        }
    }

    #[test]
    fn the_last_turn_stays_or_is_refused() {
        let (tokenizer, chat, messages) = (tokenizer(), chat(PLAIN), conversation(3));
        let last = chat.encode(&tokenizer, &[messages[0].clone(), messages[7].clone()], true).unwrap();
        let fitted = fit(&chat, &tokenizer, &messages, 20, last.len() + 1).unwrap();
        assert_eq!((fitted.tokens, fitted.dropped_messages), (last.clone(), 6));
        for messages in [&messages[..], &messages[6..]] {
            let refused = fit(&chat, &tokenizer, messages, 20, 5).unwrap_err();
            assert!(matches!(refused, EngineError::Model(ModelError::ContextFull { .. })), "{refused}");
        }
    }

    #[test]
    fn turns_are_what_follows_a_message_of_the_user() {
        let roles = ["developer", "system", "assistant", "user", "assistant", "tool", "assistant", "system", "user"];
        let messages: Vec<Message> = roles.iter().map(|role| Message::new(*role, "")).collect();
        let (system, turns) = split(&messages);
        assert_eq!((system.len(), turns.iter().map(|turn| turn.len()).collect::<Vec<_>>()), (2, vec![1, 5, 1]));
        assert_eq!(split(&[]), (&[][..], Vec::new()));
        // There are no turns, and then no messages at all.
        let (tokenizer, chat) = (tokenizer(), chat(PLAIN));
        assert_eq!(fit(&chat, &tokenizer, &messages[..2], 1, 100).unwrap().dropped_messages, 0);
        assert_eq!(fit(&chat, &tokenizer, &[], 1, 100).unwrap().keep, 0);
    }
}
