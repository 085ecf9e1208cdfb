//! Stages of a model that are loaded separately and run together.

use std::cell::Cell;
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use anygpu::{
    ByteSource, BytesSource, Choice, Engine, EngineError, EngineOptions, GenerateOptions, ModelError, ReadFuture, Seam,
    SelectOptions, Stage, StageOutput, StageStep,
};

use crate::GAB;

const TOKENS: usize = 24;

/// A source that counts the bytes that are read.
struct Counted {
    bytes: BytesSource<&'static [u8]>,
    read: Cell<u64>,
}

impl ByteSource for Counted {
    fn len(&self) -> u64 {
        self.bytes.len()
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> ReadFuture<'a> {
        self.read.set(self.read.get() + buf.len() as u64);
        self.bytes.read_at(offset, buf)
    }
}

/// Loads an engine on the CPU; returns it with the bytes that were read for it.
fn load(stage: Option<Stage>) -> Result<(Engine, u64), EngineError> {
    let source = Counted { bytes: BytesSource(GAB), read: Cell::new(0) };
    let select = SelectOptions { backend: Choice::Cpu, ..Default::default() };
    let options = EngineOptions { select, stage, prepare: true, ..Default::default() };
    let host = Rc::new(NativeHost::default());
    Ok((block_on(Engine::load(&source, &options, host, &mut |_| {}))?, source.read.get()))
}

#[test]
fn a_chain_of_engines_tells_the_same_story() {
    let (whole, all) = load(None).unwrap();
    let prompt = whole.encode("Once upon a time").unwrap();
    let options = GenerateOptions { max_tokens: Some(TOKENS), stop_tokens: Some(Vec::new()), ..Default::default() };
    let mut session = whole.session().unwrap();
    let expected = block_on(whole.generate(&mut session, &prompt, &options, &mut |_| {})).unwrap().tokens;

    let stage = |embed, blocks, head| Some(Stage { embed, blocks, head });
    let cut = [stage(true, 0..2, false), stage(false, 2..4, false), stage(false, 4..6, true)];
    let engines = cut.map(|stage| load(stage).unwrap());
    assert!(engines.iter().all(|(_, read)| *read < all * 2 / 3), "a stage reads all of {all} bytes");
    assert!(matches!(engines[1].0.session(), Err(EngineError::Model(ModelError::Options(_)))));

    let mut sessions = engines.each_ref().map(|(engine, _)| engine.stage_session(Seam::F32).unwrap());
    sessions.iter_mut().for_each(|session| session.prepare(prompt.len()).unwrap());
    let (mut text, mut done) = (prompt.clone(), 0);
    while text.len() < prompt.len() + TOKENS {
        let (tokens, mut hidden) = (text[done..].to_vec(), Vec::new());
        for (at, session) in sessions.iter_mut().enumerate() {
            let tokens = if session.needs_tokens() { &tokens[..] } else { &[] };
            let step = StageStep { position: done, tokens, hidden: &hidden, choose: at == 2 };
            match block_on(session.step(&step, whole.host())).unwrap() {
                StageOutput::Hidden(bytes) => hidden = bytes,
                StageOutput::Token { id, .. } => text.push(id),
                StageOutput::Nothing => panic!("the last stage gave no token"),
            }
        }
        done += tokens.len();
    }
    assert_eq!(text[prompt.len()..], expected);
}

#[test]
fn stages_that_cannot_be_are_refused_before_anything_is_chosen() {
    let refused = load(Some(Stage { embed: false, blocks: 4..9, head: false })).err().unwrap();
    assert!(matches!(refused, EngineError::Model(ModelError::Options(_))), "{refused}");
}
