//! Tests of stage sessions on the CPU.

use std::rc::Rc;

use anygpu_model::{
    Adjust, BytesSource, GenerateOptions, Gguf, Model, ModelError, Recipe, Sampling, Seam, Snapshot, SnapshotError,
    Stage, StageError, StageOutput, StageSession, StageStep,
};
use backend_api::run::NativeHost;

use super::common::{self, block_on, models};
use super::cpu;

/// Models with uniform blocks, sliding windows, scans, per-layer embeddings, shared keys, latent attention, or blocks
/// without states.
const CHAINED: [&str; 11] = [
    "llama-gqa-tied",
    "llama-q4_0",
    "gemma2-swa",
    "gemma3n-2l",
    "gemma4-ple",
    "mamba2-g2",
    "lfm2-tiny",
    "qwen35-tiny",
    "granitehybrid-tiny",
    "families/deepseek2-v3",
    "families/nemotron-h-moe-8x3",
];

#[test]
fn chains_of_stages() {
    for backend in [cpu(false), cpu(true)] {
        CHAINED.iter().for_each(|name| common::chain(name, std::slice::from_ref(&backend), 12, true));
    }
}

#[test]
fn chains_that_lose_a_stage() {
    for (name, seam) in CHAINED.iter().flat_map(|name| Seam::ALL.map(|seam| (name, seam))) {
        common::lost(name, seam, &[cpu(true)], &cpu(true), 12);
    }
    common::lost("llama-gqa-tied", Seam::F16, &[cpu(true)], &cpu(false), 12);
}

#[test]
fn chains_that_go_back() {
    CHAINED.iter().for_each(|name| common::back(name, &cpu(true)));
}

fn stage(embed: bool, blocks: std::ops::Range<usize>, head: bool) -> StageSession {
    let bytes = models("fixtures/llama-gqa-tied.gguf");
    let recipe = Recipe::new(&Gguf::from_bytes(&bytes).unwrap(), Some(32)).unwrap();
    let recipe = recipe.with_stage(Stage { embed, blocks, head }).unwrap();
    let host = NativeHost::default();
    let model = block_on(Model::load(&BytesSource(bytes), recipe, cpu(true), &host, &mut |_, _| {})).unwrap();
    StageSession::new(Rc::new(model), Seam::F16).unwrap()
}

fn step(
    session: &mut StageSession,
    position: usize,
    tokens: &[u32],
    hidden: &[u8],
    choose: bool,
) -> Result<StageOutput, ModelError> {
    block_on(session.step(&StageStep { position, tokens, hidden, choose }, &NativeHost::default()))
}

fn refused(result: Result<StageOutput, ModelError>) -> StageError {
    match result {
        Err(ModelError::Stage(error)) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            error
        }
        other => panic!("{other:?}"),
    }
}

/// Tests that refused steps leave the text as it was.
#[test]
fn steps_that_cannot_be() {
    let (mut first, mut middle, mut last) =
        (stage(true, 0..1, false), stage(false, 1..2, false), stage(false, 2..3, true));
    let StageOutput::Hidden(hidden) = step(&mut first, 0, &[1, 2, 3], &[], false).unwrap() else { panic!() };
    let row = hidden.len() / 3;

    assert!(matches!(refused(step(&mut first, 2, &[4], &[], false)), StageError::Position { asked: 2, end: 3 }));
    assert!(matches!(refused(step(&mut first, 4, &[4], &[], false)), StageError::Position { asked: 4, end: 3 }));
    assert!(matches!(refused(step(&mut first, 3, &[], &[], false)), StageError::Rows { rows: 0 }));
    assert!(matches!(refused(step(&mut first, 3, &[0; 4097], &[], false)), StageError::Rows { rows: 4097 }));
    assert!(matches!(refused(step(&mut first, 3, &[4], &hidden, false)), StageError::Input { tokens: 1, .. }));
    assert!(matches!(refused(step(&mut first, 3, &[4], &[], true)), StageError::NoHead { start: 0, end: 1 }));
    assert!(matches!(step(&mut first, 3, &[4, 96], &[], false), Err(ModelError::Token { id: 96, vocab: 96 })));
    assert!(matches!(
        step(&mut first, 3, &[4; 30], &[], false),
        Err(ModelError::ContextFull { used: 3, n_ctx: 32, .. })
    ));
    assert_eq!(first.position(), 3);

    for bytes in [&[][..], &hidden[..row - 1], &hidden[..row + 2]] {
        assert!(matches!(step(&mut middle, 0, &[], bytes, false), Err(ModelError::Stage(_))));
    }
    assert!(matches!(refused(step(&mut middle, 0, &[1], &hidden, false)), StageError::Input { tokens: 1, .. }));
    let infinite = [&[0x00, 0x7c], &hidden[2..row]].concat();
    assert!(matches!(refused(step(&mut middle, 0, &[], &infinite, false)), StageError::NotFinite { seam: Seam::F16 }));
    let StageOutput::Hidden(hidden) = step(&mut middle, 0, &[], &hidden, false).unwrap() else { panic!() };

    // A token needs room for itself.
    let full = hidden[..row].repeat(31);
    assert_eq!(step(&mut last, 0, &[], &full, false).unwrap(), StageOutput::Nothing);
    let refused_for_room = step(&mut last, 31, &[], &hidden[..row], true);
    assert!(matches!(refused_for_room, Err(ModelError::ContextFull { tokens: 2, used: 31, n_ctx: 32 })));
    assert_eq!(step(&mut last, 31, &[], &hidden[..row], false).unwrap(), StageOutput::Nothing);
    assert_eq!(last.rewind(0).unwrap(), 0);
    assert!(matches!(step(&mut last, 0, &[], &hidden, true).unwrap(), StageOutput::Token { log_prob: None, .. }));
}

/// Penalties depend on tokens, which the last stage must then be given.
#[test]
fn options_of_stages() {
    let (mut middle, mut last) = (stage(false, 1..2, false), stage(false, 2..3, true));
    let adjusted = GenerateOptions {
        adjust: Adjust { repetition_penalty: 1.5, ..Adjust::default() },
        ..GenerateOptions::default()
    };
    for session in [&mut middle, &mut last] {
        assert!(!session.needs_tokens());
        session.choose(&adjusted, 2).unwrap();
    }
    assert!(!middle.needs_tokens() && last.needs_tokens());
    let hidden = vec![0; 2 * last.model().recipe().hidden()];
    assert!(matches!(refused(step(&mut last, 0, &[], &hidden, true)), StageError::Input { tokens: 0, .. }));
    assert!(step(&mut last, 0, &[7], &hidden, true).is_ok());
    let sampling = Sampling::Random { temperature: -1.0, top_k: 0, top_p: 1.0, seed: 0 };
    let wrong = GenerateOptions { sampling, ..GenerateOptions::default() };
    assert!(matches!(last.choose(&wrong, 2), Err(ModelError::Options(_))));
}

/// A stage refuses the states of another stage.
#[test]
fn snapshots_of_other_stages() {
    let (mut first, mut middle) = (stage(true, 0..1, false), stage(false, 1..2, false));
    step(&mut first, 0, &[1, 2], &[], false).unwrap();
    let host = NativeHost::default();
    let bytes = block_on(first.export(0, &host)).unwrap().to_bytes();
    let snapshot = Snapshot::from_bytes(&bytes).unwrap();
    assert_eq!(snapshot.header().blocks, [0, 1]);
    let refused = block_on(middle.import(&snapshot, &host));
    assert!(matches!(refused, Err(ModelError::Snapshot(SnapshotError::Other { .. }))), "{refused:?}");
    assert_eq!(middle.position(), 0);
}
