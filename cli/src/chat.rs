//! `chat` and `run`: a conversation in the terminal or through a pipe.

mod commands;
mod conversation;
mod input;
mod settings;

use crate::args::{DeviceArgs, LoadArgs, RunArgs, SessionArgs, TalkArgs};
use crate::load::Loaded;
use crate::models::Reference;
use crate::{embedded, interrupt, output, text};
use anygpu::{ChatOptions, ChatPrompt, Constraint, Finish, GenerateOptions, Generation, Message, Part, Sampling};
use anygpu_constrain::Format;
use anyhow::{Result, anyhow, bail};
use commands::{Ask, HELP};
use conversation::Conversation;
use input::{Input, Next};
use output::Words;
use settings::Settings;
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::rc::Rc;

/// A model that can chat, which error messages suggest.
const SUGGESTED: &str = "hf:HuggingFaceTB/SmolLM2-360M-Instruct-GGUF";

/// Runs `run`: answers one message, or begins a conversation if there is none. Returns whether it was interrupted.
pub fn asked(args: &RunArgs, device: &DeviceArgs) -> Result<bool> {
    let load = args.load();
    check(&load)?;
    let message = text::instructed(&args.prompt.join(" "), None)?;
    if message.is_empty() && io::stdin().is_terminal() {
        return run(&load, &args.talk, device);
    }
    if message.trim().is_empty() {
        bail!(
            "nothing is asked: give a prompt, as in `anygpu run MODEL \"Why is the sky blue?\"`, or a text through a pipe"
        );
    }
    Chat::new(&load, &args.talk, device)?.answer(&message)?;
    Ok(interrupt::interrupted())
}

/// Refuses the built-in model, which cannot chat.
fn check(load: &LoadArgs) -> Result<()> {
    if load.model.model == Reference::BuiltIn {
        bail!(
            "{}, the built-in model, tells stories and cannot chat; name a model that can, such as `anygpu chat --model \
             {SUGGESTED}`, which is fetched once (386 MB)",
            embedded::NAME
        );
    }
    Ok(())
}

/// Runs `chat`. Returns whether it was interrupted.
pub fn run(load: &LoadArgs, talk: &TalkArgs, device: &DeviceArgs) -> Result<bool> {
    check(load)?;
    let mut input = Input::new(!talk.no_history)?;
    let mut chat = Chat::new(load, talk, device)?;
    if input.is_terminal() {
        interrupt::conversing();
        let info = chat.loaded.info();
        output::aside(&format!(
            "{} on {} ({}); {}. /help says what can be typed, Ctrl-D leaves.\n",
            chat.loaded.name,
            info.name,
            info.adapter,
            chat.loaded.context()
        ));
    }
    loop {
        let lines = match input.next()? {
            Next::Lines(lines) => lines,
            Next::Interrupt => {
                output::aside("Ctrl-D or /exit leaves; Ctrl-C ends an answer that is under way\n");
                continue;
            }
            Next::End => return Ok(false),
        };
        let asked = commands::read(&lines).map_err(|message| anyhow!(message));
        match asked.and_then(|ask| chat.follow(ask)) {
            Ok(true) => return Ok(false),
            Ok(false) => {}
            // In a terminal the user sees the error and can continue.
            Err(error) if input.is_terminal() && !output::reader_left(&error) => output::error(&error),
            Err(error) => return Err(error),
        }
        if interrupt::interrupted() && !input.is_terminal() {
            return Ok(true);
        }
    }
}

struct Chat<'a> {
    loaded: Loaded,
    conversation: Conversation,
    talk: &'a TalkArgs,
    settings: Settings,
    /// The format of answers, if they have one.
    format: Option<Format>,
    /// The format of the last answer, including what may precede the answer, and its constraint.
    held: Option<(Format, Rc<dyn Constraint>)>,
    /// The last answer, and the number of tokens of the conversation with it.
    last: Option<(Generation, usize)>,
    /// Number of messages that were left out for the last answer.
    dropped: usize,
}

impl Chat<'_> {
    /// Loads the model and begins an empty conversation.
    ///
    /// *Errors*: the format cannot be enforced, or those of [`Loaded::going_on`].
    fn new<'a>(load: &LoadArgs, talk: &'a TalkArgs, device: &DeviceArgs) -> Result<Chat<'a>> {
        let format = talk.format.format()?;
        let loaded = Loaded::going_on(load, &talk.draft, device, &SessionArgs::default())?;
        loaded.makes_text()?;
        if !loaded.has_chat_template() {
            output::note(&format!(
                "note: {} has no chat template, so it was hardly made to chat; its answers may be odd",
                loaded.name
            ));
        }
        Ok(Chat {
            format,
            held: None,
            loaded,
            conversation: Conversation::new(talk.system.as_deref().unwrap_or_default()),
            settings: Settings::new(&talk.sampling, talk.max_tokens),
            talk,
            last: None,
            dropped: 0,
        })
    }

    /// Executes what a line asks for. Returns whether to leave.
    fn follow(&mut self, ask: Ask<'_>) -> Result<bool> {
        match ask {
            Ask::Nothing => {}
            Ask::Answer(message) => self.answer(&message)?,
            Ask::System(text) => self.conversation.set_system(text),
            Ask::Reset => self.conversation.reset(),
            Ask::Again => self.again()?,
            Ask::Set(change) => {
                self.settings.change(change)?;
                output::aside(&self.settings.to_string());
            }
            Ask::Save(file) => {
                self.conversation.save(Path::new(file))?;
                output::aside(&format!("saved to {file}\n"));
            }
            Ask::Load(file) => {
                self.conversation = Conversation::load(Path::new(file))?;
                output::aside(&format!("{} messages, after which the conversation goes on\n", self.conversation.len()));
            }
            Ask::Stats => output::aside(&self.stats()),
            Ask::Help => HELP.iter().for_each(|(name, about)| output::aside(&format!("{name:<16} {about}\n"))),
            Ask::Exit => return Ok(true),
        }
        Ok(false)
    }

    /// Answers a message. If there is no answer, the message is removed again.
    fn answer(&mut self, message: &str) -> Result<()> {
        self.conversation.say("user", message);
        let answered = self.generate();
        match &answered {
            Ok(said) if !said.is_empty() => self.conversation.say("assistant", said),
            _ => self.conversation.unsay(),
        }
        if answered?.is_empty() {
            output::aside("(no answer; the message is taken back)\n");
        }
        Ok(())
    }

    /// Answers the last message again. If that fails, the earlier answer stays.
    fn again(&mut self) -> Result<()> {
        let Some(before) = self.conversation.unanswer() else { bail!("nothing was answered yet; type a message") };
        if self.settings.sampling() == Sampling::Greedy {
            output::aside("(always the likeliest token; /set temperature 0.8 gives other answers)\n");
        }
        self.settings.next_seed();
        let answered = self.generate();
        let answer = answered.as_ref().ok().filter(|said| !said.is_empty()).unwrap_or(&before);
        self.conversation.say("assistant", answer);
        if answered?.is_empty() {
            output::aside("(no answer; the one before stays)\n");
        }
        Ok(())
    }

    /// Returns the constraint of the answer's format, if there is one. A new one is compiled only if something else may
    /// precede the answer.
    fn constraint(&mut self, messages: &[Message], options: &ChatOptions) -> Result<Option<Rc<dyn Constraint>>> {
        let Some(format) = self.format.clone() else { return Ok(None) };
        let format = self.loaded.answering(format, messages, options)?;
        if self.held.as_ref().is_none_or(|(held, _)| *held != format) {
            let constraint = self.loaded.held(Some(&format))?;
            self.held = constraint.map(|constraint| (format, constraint));
        }
        Ok(self.held.as_ref().map(|(_, constraint)| constraint.clone()))
    }

    /// Generates an answer and shows it as it comes. Returns its text without reasoning.
    fn generate(&mut self) -> Result<String> {
        let cancel = Rc::new(Cell::new(false));
        let mut options = GenerateOptions {
            max_tokens: Some(self.settings.max_tokens),
            overflow: self.talk.overflow,
            sampling: self.settings.sampling(),
            cancel: Some(cancel.clone()),
            ..self.loaded.generate_options(None)
        };
        let messages = self.conversation.messages();
        let held = self.format.is_some();
        let asked = ChatOptions { variables: self.talk.template.variables(), held, ..ChatOptions::default() };
        options.constraint = self.constraint(&messages, &asked)?;
        let chat = self.loaded.template(&asked)?;
        let ChatPrompt { tokens, keep, dropped_messages } = self.loaded.chat(&chat, &messages, &options)?;
        let (mut parts, shown) = self.loaded.parts(&chat, &tokens)?;
        options.shown = shown;
        options.overflow = self.talk.overflow.keeping(None, keep)?;
        if dropped_messages > self.dropped {
            let n_ctx = self.loaded.n_ctx();
            output::aside(&format!(
                "(the context of {n_ctx} is full: the oldest {dropped_messages} messages are left out)\n"
            ));
        }
        self.dropped = dropped_messages;

        let (mut said, mut written, mut thought) = (String::new(), Ok(()), false);
        let (mut thoughts, mut words) = (Words::thought(), Words::said());
        let mut show = |part: Part| match part {
            Part::Thought(text) => {
                // Ignored: the standard error may be closed.
                let _ = thoughts.push(&text);
                thought = true;
            }
            Part::Said(text) => {
                if thought {
                    let _ = thoughts.end();
                    output::aside("\n\n");
                    thought = false;
                }
                said += &text;
                if written.is_ok() {
                    written = words.push(&text);
                    cancel.set(written.is_err());
                }
            }
            // `chat` has no tools.
            Part::Call(_) | Part::Arguments(_) => {}
        };
        interrupt::forget();
        interrupt::generating(true);
        let generated = self.loaded.generate(&tokens, &options, &mut |piece| {
            parts.push(piece.text).into_iter().for_each(&mut show);
            if interrupt::interrupted() {
                cancel.set(true);
            }
        });
        interrupt::generating(false);
        parts.finish().into_iter().for_each(&mut show);
        if thought {
            let _ = thoughts.end();
            output::aside("\n");
        }
        written?;
        if !said.is_empty() {
            words.end()?;
            output::text("\n")?;
        }
        let generation = generated?;
        match (generation.finish, generation.overflow) {
            (Finish::Cancelled, _) => output::aside("(stopped)\n"),
            (Finish::Length, Some(over)) if over.dropped_tokens == 0 => {
                output::aside(
                    "(the context is full; --overflow shift leaves out what is oldest, /reset begins anew)\n",
                );
            }
            (Finish::Length, _) => output::aside("(it could go on; --max-tokens allows longer answers)\n"),
            (Finish::Stop, _) => {}
        }
        let text = tokens.len() + generation.tokens.len();
        self.last = Some((generation, text));
        Ok(said)
    }

    /// Returns the text of `/stats`.
    fn stats(&self) -> String {
        let (info, n_ctx) = (self.loaded.info(), self.loaded.n_ctx());
        let mut text = format!("model         {} on {} ({})\n", self.loaded.name, info.name, info.adapter);
        let memory = self.loaded.memory().map_or(0.0, |(held, _)| held as f64 / 1e6);
        text += &format!("memory        {memory:.0} MB on the device\n");
        text += &format!("conversation  {} messages", self.conversation.len());
        text += &if self.dropped > 0 { format!(", the oldest {} left out\n", self.dropped) } else { "\n".into() };
        let Some((last, tokens)) = &self.last else { return text };
        let in_context = tokens - last.overflow.map_or(0, |over| over.dropped_tokens).min(*tokens);
        text += &format!("context       {in_context} of {n_ctx} tokens\n");
        let rate = if last.decode_ms_per_token > 0.0 { 1000.0 / last.decode_ms_per_token } else { 0.0 };
        text += &format!(
            "last answer   {} tokens at {rate:.1} a second, the first after {:.0} ms; of the prompt {} tokens were \
             computed and {} were known\n",
            last.tokens.len(),
            last.prefill_ms,
            last.prompt_tokens,
            last.cached_tokens
        );
        text
    }
}
