//! A model that is cut into stages gives the results of the whole model.

use std::collections::HashMap;
use std::rc::Rc;

use anygpu_model::arch::{HIDDEN_IN, HISTORY};
use anygpu_model::{BytesSource, GenerateOptions, Gguf, Head, Model, Recipe, Session, Stage, StateSpec};
use backend_api::run::read_rows;
use backend_api::{Backend, Kind, Program, Shape, StepParams, StorageDesc, StorageId, Tensor, Update};

use super::{Fixture, NativeHost, block_on, load, models, nmse};

/// Number of greedy tokens that are compared.
const TOKENS: usize = 13;

struct Compiled {
    program: Box<dyn Program>,
    input: Option<StorageId>,
    output: Option<(StorageId, usize)>,
}

/// A stage with its weights, states and programs.
struct Runner {
    backend: Rc<dyn Backend>,
    model: Model,
    stage: Stage,
    states: HashMap<String, StorageId>,
    programs: HashMap<(usize, Head), Compiled>,
}

impl Runner {
    fn new(bytes: &[u8], n_ctx: usize, stage: Stage, backend: &Rc<dyn Backend>) -> Runner {
        let recipe = Recipe::new(&Gguf::from_bytes(bytes).unwrap(), Some(n_ctx)).unwrap();
        let whole = recipe.weights().len();
        let recipe = recipe.with_stage(stage.clone()).unwrap();
        let all = stage.blocks.len() == recipe.n_blocks();
        assert!(all || recipe.weights().len() < whole, "{stage:?} loads all weights of the model");
        let mut states = HashMap::new();
        for StateSpec { name, shape, dtype, update } in recipe.states().unwrap() {
            let tensor = Tensor { name, shape: Shape::new(&shape).unwrap(), dtype, kind: Kind::State(update) };
            let id = backend.create(&StorageDesc::of(&tensor)).unwrap();
            states.insert(tensor.name, id);
        }
        let (source, host) = (BytesSource(bytes.to_vec()), NativeHost::default());
        let model = block_on(Model::load(&source, recipe, backend.clone(), &host, &mut |_, _| {})).unwrap();
        Runner { backend: backend.clone(), model, stage, states, programs: HashMap::new() }
    }

    fn compile(&self, rows: usize, head: Head) -> Compiled {
        let graph = self.model.recipe().graph(rows, head).unwrap();
        let plan = self.backend.plan(graph).unwrap();
        let (mut bound, mut input, mut output) = (Vec::new(), None, None);
        for (_, tensor) in plan.graph().externals() {
            let create = || self.backend.create(&StorageDesc::of(tensor)).unwrap();
            bound.push(match tensor.kind {
                Kind::Weight => self.model.weight(&tensor.name).unwrap(),
                Kind::State(_) => self.states[&tensor.name],
                Kind::Input => {
                    assert_eq!(tensor.name, HIDDEN_IN);
                    *input.insert(create())
                }
                Kind::Output | Kind::Temporary => output.insert((create(), tensor.shape.cols())).0,
            });
        }
        Compiled { program: self.backend.compile(&plan, &bound).unwrap(), input, output }
    }

    /// Takes a step on the activations of the stage before; returns its output, if it has one.
    fn step(&mut self, rows: usize, head: Head, params: &StepParams, hidden: &[f32]) -> Vec<f32> {
        let recipe = self.model.recipe();
        let is_last = self.stage.blocks.end == recipe.n_blocks();
        if is_last && head == Head::NONE && !recipe.keeps_states().unwrap() {
            return Vec::new();
        }
        if !self.programs.contains_key(&(rows, head)) {
            let compiled = self.compile(rows, head);
            self.programs.insert((rows, head), compiled);
        }
        let compiled = self.programs.get_mut(&(rows, head)).unwrap();
        assert_eq!(compiled.input.is_some(), !self.stage.embed);
        if let Some(input) = compiled.input {
            self.backend.write(input, 0, bytemuck::cast_slice(hidden)).unwrap();
        }
        compiled.program.step(params).unwrap();
        let Some((output, cols)) = compiled.output else { return Vec::new() };
        let rows = if head == Head::LOGITS && self.stage.head { 1 } else { rows };
        let mut values = vec![0f32; rows * cols];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        block_on(read_rows(&*self.backend, output, 0, rows, bytes, &NativeHost::default())).unwrap();
        values
    }
}

/// Takes a step in all stages.
fn step(stages: &mut [Runner], rows: usize, head: Head, params: &StepParams) -> Vec<f32> {
    stages.iter_mut().fold(Vec::new(), |hidden, stage| stage.step(rows, head, params, &hidden))
}

/// Rewinds to the empty text: recurrent states are zero again.
fn rewind(stages: &[Runner]) {
    for Runner { backend, model, states, .. } in stages {
        for spec in model.recipe().states().unwrap().iter().filter(|spec| spec.update == Update::Replace) {
            let shape = Shape::new(&spec.shape).unwrap();
            let bytes = spec.dtype.row_bytes(shape.cols()).unwrap() * shape.rows();
            backend.write(states[&spec.name], 0, &vec![0; bytes]).unwrap();
        }
    }
}

/// Writes tokens from a position on to the stages that read them.
fn tell(stages: &[Runner], position: usize, tokens: &[u32]) {
    for Runner { backend, states, .. } in stages {
        if let Some(history) = states.get(HISTORY) {
            backend.write(*history, position, bytemuck::cast_slice(tokens)).unwrap();
        }
    }
}

/// Returns the token that the last stage chose for a position.
fn chosen(stages: &[Runner], position: usize) -> u32 {
    let last = &stages[stages.len() - 1];
    let mut bytes = [0; 4];
    let host = NativeHost::default();
    block_on(read_rows(&*last.backend, last.states[HISTORY], position, 1, &mut bytes, &host)).unwrap();
    u32::from_le_bytes(bytes)
}

/// Returns ways to cut a model: in two at every possible place, and at all those places together.
fn cuts(recipe: &Recipe) -> Vec<Vec<Stage>> {
    let n = recipe.n_blocks();
    let stage = |embed, blocks, head| Stage { embed, blocks, head };
    let places: Vec<usize> = (0..=n).filter(|k| (*k..n).all(|block| recipe.keys_of(block) >= *k)).collect();
    let two = |k: &usize| vec![stage(true, 0..*k, false), stage(false, *k..n, true)];
    let mut all: Vec<_> = places.iter().map(two).collect();
    let mut every = vec![stage(true, 0..0, false)];
    every.extend(places.windows(2).map(|pair| stage(false, pair[0]..pair[1], false)));
    every.push(stage(false, n..n, true));
    all.push(every);
    all
}

/// Compares a tiny model's logits and greedy tokens, cut into stages in every way, with those of the whole model on the
/// same backend. Logits may differ by an NMSE of `limit`.
pub fn stages(name: &str, backend: &Rc<dyn Backend>, limit: f64) {
    let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
    let Fixture { n_ctx, tokens, .. } = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
    let bytes = models(&format!("fixtures/{name}.gguf"));
    let (host, prompt) = (NativeHost::default(), &tokens[..11]);
    let mut whole = Session::new(load(bytes.clone(), Some(n_ctx), backend.clone())).unwrap();
    let cuts = cuts(whole.model().recipe());
    let n_vocab = whole.model().recipe().sizes().n_vocab;
    let options =
        GenerateOptions { max_tokens: Some(TOKENS), stop_tokens: Some(Vec::new()), ..GenerateOptions::default() };
    let generated = block_on(whole.generate(prompt, &options, None, &host, &mut |_| {})).unwrap().tokens;
    whole.rewind(0);
    let logits = block_on(whole.logits(&tokens, true, &host)).unwrap();

    for cut in cuts {
        let mut stages: Vec<_> = cut.iter().map(|stage| Runner::new(&bytes, n_ctx, stage.clone(), backend)).collect();

        // The prompt is computed in two parts, of which the second does not fill its rows, and then token by token.
        tell(&stages, 0, prompt);
        step(&mut stages, 8, Head::NONE, &StepParams::at(0, 8));
        step(&mut stages, 4, Head::GREEDY, &StepParams::at(8, 3));
        let mut found = vec![chosen(&stages, prompt.len())];
        for position in prompt.len()..prompt.len() + TOKENS - 1 {
            tell(&stages, position, &found[found.len() - 1..]);
            step(&mut stages, 1, Head::GREEDY, &StepParams::at(position as u32, 1));
            found.push(chosen(&stages, position + 1));
        }
        assert_eq!(found, generated, "{name} as {cut:?}");

        rewind(&stages);
        tell(&stages, 0, &tokens);
        let mut found = Vec::new();
        for first in (0..tokens.len()).step_by(8) {
            let rows = (tokens.len() - first).min(8);
            let values = step(&mut stages, 8, Head::LOGITS.of_all_rows(), &StepParams::at(first as u32, rows as u32));
            found.extend(&values[..rows * n_vocab]);
        }
        if limit > 0.0 {
            let error = nmse(&found, &logits);
            assert!(error <= limit, "{name} as {cut:?}: NMSE {error:.2e}");
        } else {
            assert!(found == logits, "{name} as {cut:?}: logits differ, by NMSE {:.2e}", nmse(&found, &logits));
        }
        rewind(&stages);
        tell(&stages, 0, &tokens[..8]);
        let last = step(&mut stages, 8, Head::LOGITS, &StepParams::at(0, 8));
        assert!(nmse(&last, &logits[7 * n_vocab..8 * n_vocab]) <= limit, "{name} as {cut:?}: logits of the last row");
        for Runner { states, .. } in &stages {
            states.values().for_each(|id| backend.destroy(*id));
        }
    }
}
