//! Sequences that share a program give the same results as each one alone.

use std::rc::Rc;

use anygpu_model::arch::HISTORY;
use anygpu_model::{GenerateOptions, Head, Model, Sampling, Session, StateSpec};
use backend_api::run::read_rows;
use backend_api::{Backend, Kind, Program, Shape, StepParams, StorageDesc, StorageId, Tensor};

use super::{Fixture, NativeHost, block_on, load, models};

/// New tokens of each sequence.
const TOKENS: usize = 12;
/// Rows of the program for prompts; no prompt fills them.
const ROWS: usize = 16;

/// Storages of a model's states, by name.
struct States<'a>(&'a dyn Backend, Vec<(String, StorageId)>);

impl<'a> States<'a> {
    fn new(model: &'a Model) -> States<'a> {
        let backend = &**model.backend();
        let state = |StateSpec { name, shape, dtype, update }| {
            let tensor = Tensor { name, shape: Shape::new(&shape).unwrap(), dtype, kind: Kind::State(update) };
            let id = backend.create(&StorageDesc::of(&tensor)).unwrap();
            (tensor.name, id)
        };
        States(backend, model.recipe().states().unwrap().into_iter().map(state).collect())
    }

    fn get(&self, name: &str) -> StorageId {
        self.1.iter().find(|(known, _)| known == name).unwrap().1
    }
}

impl Drop for States<'_> {
    fn drop(&mut self) {
        self.1.iter().for_each(|(_, id)| self.0.destroy(*id));
    }
}

fn compile(model: &Model, rows: usize, states: &[States<'_>]) -> Box<dyn Program> {
    let plan = model.backend().plan(model.recipe().graph(rows, Head::SAMPLE).unwrap()).unwrap();
    let bound = |states: &States<'_>| -> Vec<StorageId> {
        let storage = |tensor: &Tensor| match tensor.kind {
            Kind::State(_) => states.get(&tensor.name),
            _ => model.weight(&tensor.name).unwrap(),
        };
        plan.graph().externals().map(|(_, tensor)| storage(tensor)).collect()
    };
    let bound: Vec<_> = states.iter().map(bound).collect();
    let bound: Vec<&[StorageId]> = bound.iter().map(Vec::as_slice).collect();
    refuses_what_is_not_shared(model, &plan, &bound);
    model.backend().compile_sequences(&plan, &bound).unwrap()
}

fn refuses_what_is_not_shared(model: &Model, plan: &backend_api::Plan, bound: &[&[StorageId]]) {
    let weight = plan.graph().externals().position(|(_, tensor)| tensor.kind == Kind::Weight).unwrap();
    let mut other = bound[0].to_vec();
    other[weight] = other[(weight + 1) % other.len()];
    let why = |sequences: &[&[StorageId]]| {
        model.backend().compile_sequences(plan, sequences).map(drop).unwrap_err().to_string()
    };
    assert!(why(&[bound[0], &other]).contains("is not a state"), "{}", why(&[bound[0], &other]));
    assert!(why(&[bound[0], &other[1..]]).contains("storages were given"));
    assert!(why(&[]).contains("not for none"));
}

/// Compares three sampled sequences of a tiny model, of different lengths and seeds, with sessions of their own on the
/// same backend. The sequences advance together by one program for prompts and one for tokens.
pub fn sequences(name: &str, backend: &Rc<dyn Backend>) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let Fixture { n_ctx, tokens, .. } = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let model = load(models(&format!("fixtures/{name}.gguf")), Some(n_ctx), backend.clone());
    let host = NativeHost::default();
    let prompts = [&tokens[..11], &tokens[3..8], &tokens[1..10]];
    let seed = |i: usize| 5 + i as u32;
    let expected: Vec<Vec<u32>> = prompts
        .iter()
        .enumerate()
        .map(|(i, prompt)| {
            let mut session = Session::new(model.clone()).unwrap();
            let options = GenerateOptions {
                max_tokens: Some(TOKENS),
                sampling: Sampling::Random { temperature: 1.0, top_k: 8, top_p: 1.0, seed: seed(i).into() },
                stop_tokens: Some(Vec::new()),
                ..GenerateOptions::default()
            };
            block_on(session.generate(prompt, &options, None, &host, &mut |_| {})).unwrap().tokens
        })
        .collect();

    let states: Vec<_> = prompts.iter().map(|_| States::new(&model)).collect();
    for (states, prompt) in states.iter().zip(prompts) {
        backend.write(states.get(HISTORY), 0, bytemuck::cast_slice(prompt)).unwrap();
    }
    let params = |i: usize, position: usize, rows: usize| StepParams {
        sequence: i as u32,
        temperature: 1.0,
        top_k: 8,
        seed_lo: seed(i),
        ..StepParams::at(position as u32, rows as u32)
    };
    let mut of_prompts = compile(&model, ROWS, &states);
    let mut of_tokens = compile(&model, 1, &states);
    let prefill: Vec<_> = prompts.iter().enumerate().map(|(i, prompt)| params(i, 0, prompt.len())).collect();
    of_prompts.steps(&prefill).unwrap();
    for n in 0..TOKENS - 1 {
        let step: Vec<_> = prompts.iter().enumerate().map(|(i, prompt)| params(i, prompt.len() + n, 1)).collect();
        of_tokens.steps(&step).unwrap();
    }
    let unknown = of_tokens.step(&params(prompts.len(), 0, 1)).unwrap_err();
    assert!(unknown.to_string().contains("compiled for"), "{unknown}");

    for ((states, prompt), expected) in states.iter().zip(prompts).zip(&expected) {
        let mut found = vec![0u32; TOKENS];
        let bytes = bytemuck::cast_slice_mut(&mut found);
        block_on(read_rows(&**backend, states.get(HISTORY), prompt.len(), TOKENS, bytes, &host)).unwrap();
        assert_eq!(found, *expected, "{name} after {prompt:?}");
    }
    drop((of_prompts, of_tokens));
}
