//! Sessions that are rewound to the end of a prompt, and continue from there.

use std::rc::Rc;

use anygpu_model::{GenerateOptions, Generation, Session};
use backend_api::Backend;

use super::{Fixture, NativeHost, block_on, load, models};

/// A prompt is answered again, and a conversation continues, from what the prompt left. Only the prompt's last token,
/// or that token and the answer, is recomputed. Both results equal those of an undisturbed session, bit for bit.
pub fn again(name: &str, backend: &Rc<dyn Backend>) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let Fixture { n_ctx, tokens, .. } = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let model = load(models(&format!("fixtures/{name}.gguf")), Some(n_ctx), backend.clone());
    let host = NativeHost::default();
    // The front of the prompt has no head, as in a prefill. The rest returns the logits.
    let undisturbed = |front: &[u32], rest: &[u32]| {
        let mut session = Session::new(model.clone()).unwrap();
        block_on(session.logits(front, false, &host)).unwrap();
        block_on(session.logits(rest, false, &host)).unwrap()
    };
    let answer = |session: &mut Session, prompt: &[u32]| -> Generation {
        let options = GenerateOptions {
            max_tokens: Some(6),
            stop_tokens: Some(Vec::new()),
            fetch_interval: Some(4),
            ..GenerateOptions::default()
        };
        block_on(session.generate(prompt, &options, None, &host, &mut |_| {})).unwrap()
    };
    let (prompt, more) = tokens.split_at(12);
    let (last, front) = prompt.split_last().unwrap();

    let mut session = Session::new(model.clone()).unwrap();
    let first = answer(&mut session, prompt).tokens;
    for _ in 0..2 {
        let rest = session.resume(prompt);
        assert_eq!(rest, [*last], "{name}: a prompt that is answered again");
        let found = block_on(session.logits(rest, false, &host)).unwrap();
        assert!(found == undisturbed(front, rest), "{name}: logits after the same prompt");
        let rest = session.resume(prompt);
        assert_eq!(answer(&mut session, rest).tokens, first, "{name}: the same answer");
    }

    // The next turn keeps the answer except for its last token, and each turn leaves a checkpoint.
    let mut turn = [prompt, &first[..5], more].concat();
    for _ in 0..7 {
        let rest = session.resume(&turn).to_vec();
        assert!(rest.len() < more.len() + 8, "{name}: {} tokens are computed again", rest.len());
        let found = block_on(session.logits(&rest, false, &host)).unwrap();
        let (front, behind) = turn.split_at(turn.len() - rest.len());
        if front.len() == prompt.len() - 1 {
            assert!(found == undisturbed(front, behind), "{name}: logits of the next turn");
        }
        let rest = session.resume(&turn).to_vec();
        let made = answer(&mut session, &rest).tokens;
        turn.extend(made.iter().chain(&more[..3]));
    }
    // A common beginning before all checkpoints cannot be reused.
    let other = [&prompt[..4], &more[..2]].concat();
    assert_eq!(session.resume(&other), other, "{name}: another text");
}
