//! Sessions of pipeline stages on one backend or several, which together compute the model.

use std::rc::Rc;

use anygpu_model::{
    Adjust, BytesSource, GenerateOptions, Gguf, LogProb, Model, Recipe, Sampling, Seam, Session, Snapshot, Stage,
    StageOutput, StageSession, StageStep,
};
use backend_api::{Backend, Update};

use super::{Fixture, NativeHost, block_on, load, models};

/// Tokens of the prompt, in two parts. The second one takes several steps, as in a session of the whole model.
const PIECES: [usize; 2] = [8, 3];

/// Input of a stage.
#[derive(Clone)]
struct Given {
    position: usize,
    tokens: Vec<u32>,
    hidden: Vec<u8>,
    choose: bool,
}

/// A stage with its session, and all inputs so far.
struct Link {
    session: StageSession,
    kept: Vec<Given>,
}

impl Link {
    fn step(&mut self, given: Given) -> StageOutput {
        let output = self.again(&given);
        self.kept.push(given);
        output
    }

    fn again(&mut self, given: &Given) -> StageOutput {
        let Given { position, tokens, hidden, choose } = given;
        let step = StageStep { position: *position, tokens, hidden, choose: *choose };
        block_on(self.session.step(&step, &NativeHost::default())).unwrap()
    }
}

/// A model that can be loaded stage by stage, and a text for it.
struct Subject {
    bytes: Vec<u8>,
    n_ctx: usize,
    prompt: Vec<u32>,
}

impl Subject {
    fn new(name: &str) -> Subject {
        let manifest: Vec<Fixture> = serde_json::from_slice(&models("fixtures/manifest.json")).unwrap();
        let Fixture { n_ctx, tokens, .. } = manifest.into_iter().find(|f| f.model == format!("{name}.gguf")).unwrap();
        let prompt = tokens[..PIECES.iter().sum()].to_vec();
        Subject { bytes: models(&format!("fixtures/{name}.gguf")), n_ctx, prompt }
    }

    fn recipe(&self) -> Recipe {
        Recipe::new(&Gguf::from_bytes(&self.bytes).unwrap(), Some(self.n_ctx)).unwrap()
    }

    fn model(&self, stage: Stage, backend: &Rc<dyn Backend>) -> Rc<Model> {
        let (source, host) = (BytesSource(&self.bytes[..]), NativeHost::default());
        let recipe = self.recipe().with_stage(stage).unwrap();
        Rc::new(block_on(Model::load(&source, recipe, backend.clone(), &host, &mut |_, _| {})).unwrap())
    }

    /// Loads the stages of the model, cut at these blocks, on the backends in turn.
    fn models(&self, cuts: &[usize], backends: &[Rc<dyn Backend>]) -> Vec<Rc<Model>> {
        let n = self.recipe().n_blocks();
        let borders = [&[0], cuts, &[n]].concat();
        let stage = |(at, pair): (usize, &[usize])| {
            let stage = Stage { embed: at == 0, blocks: pair[0]..pair[1], head: at == cuts.len() };
            self.model(stage, &backends[at % backends.len()])
        };
        borders.windows(2).enumerate().map(stage).collect()
    }

    /// Returns where the model can be cut: in two, in three, and everywhere.
    fn cuts(&self) -> Vec<Vec<usize>> {
        let (recipe, n) = (self.recipe(), self.recipe().n_blocks());
        let places: Vec<usize> = (1..n).filter(|k| (*k..n).all(|block| recipe.keys_of(block) >= *k)).collect();
        let mut all: Vec<Vec<usize>> = places.iter().take(1).map(|place| vec![*place]).collect();
        all.extend(places.first().zip(places.last()).filter(|(a, b)| a != b).map(|(a, b)| vec![*a, *b]));
        all.push(places);
        all.dedup();
        all
    }
}

/// Stages of one sequence.
struct Chain {
    links: Vec<Link>,
    tokens: Vec<u32>,
    told: Vec<Option<LogProb>>,
}

impl Chain {
    fn new(models: &[Rc<Model>], seam: Seam, options: &GenerateOptions) -> Chain {
        let link = |model: &Rc<Model>| Link { session: session(model, seam, options), kept: Vec::new() };
        Chain { links: models.iter().map(link).collect(), tokens: Vec::new(), told: Vec::new() }
    }

    /// Takes a step in all stages.
    fn step(&mut self, position: usize, tokens: &[u32], choose: bool) {
        let (mut hidden, last) = (Vec::new(), self.links.len() - 1);
        for (at, link) in self.links.iter_mut().enumerate() {
            let tokens = if link.session.needs_tokens() { tokens.to_vec() } else { Vec::new() };
            match link.step(Given {
                position,
                tokens,
                hidden: std::mem::take(&mut hidden),
                choose: choose && at == last,
            }) {
                StageOutput::Hidden(bytes) => hidden = bytes,
                StageOutput::Token { id, log_prob } => {
                    self.tokens.push(id);
                    self.told.push(log_prob);
                }
                StageOutput::Nothing => assert!(at == last && !choose),
            }
        }
    }

    fn prefill(&mut self, prompt: &[u32]) {
        let mut position = 0;
        for rows in PIECES {
            self.step(position, &prompt[position..position + rows], position + rows == prompt.len());
            position += rows;
        }
    }

    /// Decodes until there are so many tokens.
    fn decode(&mut self, prompt: &[u32], count: usize) {
        while self.tokens.len() < count {
            self.step(prompt.len() + self.tokens.len() - 1, &[self.tokens[self.tokens.len() - 1]], true);
        }
    }
}

fn session(model: &Rc<Model>, seam: Seam, options: &GenerateOptions) -> StageSession {
    let mut session = StageSession::new(model.clone(), seam).unwrap();
    session.choose(options, PIECES.iter().sum()).unwrap();
    session
}

/// Returns greedy options, and sampled ones with all adjustments.
fn ways(tokens: usize) -> [GenerateOptions; 2] {
    let greedy =
        GenerateOptions { max_tokens: Some(tokens), stop_tokens: Some(Vec::new()), ..GenerateOptions::default() };
    let adjust = Adjust {
        repetition_penalty: 1.3,
        presence_penalty: 0.2,
        frequency_penalty: 0.1,
        min_p: 0.01,
        logit_bias: vec![(5, -2.0)],
    };
    let sampling = Sampling::Random { temperature: 1.2, top_k: 30, top_p: 0.95, seed: 5 };
    [greedy.clone(), GenerateOptions { sampling, adjust, log_probs: Some(2), ..greedy }]
}

/// A model in stages gives the tokens of the whole model. With `exactly`, probabilities are the same to the last bit,
/// too.
pub fn chain(name: &str, backends: &[Rc<dyn Backend>], tokens: usize, exactly: bool) {
    let subject = Subject::new(name);
    let prompt = &subject.prompt;
    let mut whole = Session::new(load(subject.bytes.clone(), Some(subject.n_ctx), backends[0].clone())).unwrap();
    let ways = ways(tokens);
    let expected = ways.each_ref().map(|options| {
        whole.rewind(0);
        block_on(whole.generate(prompt, options, None, &NativeHost::default(), &mut |_| {})).unwrap()
    });
    for cuts in subject.cuts() {
        let models = subject.models(&cuts, backends);
        // Both sequences run at the same time, with states of their own in every stage.
        let mut chains = ways.each_ref().map(|options| Chain::new(&models, Seam::F32, options));
        chains.iter_mut().for_each(|chain| chain.prefill(prompt));
        for count in 1..=tokens {
            chains.iter_mut().for_each(|chain| chain.decode(prompt, count));
        }
        for (chain, expected) in chains.iter().zip(&expected) {
            assert_eq!(chain.tokens, expected.tokens, "{name} cut at {cuts:?}");
            let told: Vec<LogProb> = chain.told.iter().flatten().cloned().collect();
            assert_eq!(told.len(), expected.log_probs.len());
            assert!(!exactly || told == expected.log_probs, "{name} cut at {cuts:?}: probabilities differ");
        }
    }
}

/// A stage that is lost in the middle of a sequence is replaced on another backend, from saved states or from its
/// earlier inputs. The tokens stay the same.
pub fn lost(name: &str, seam: Seam, backends: &[Rc<dyn Backend>], spare: &Rc<dyn Backend>, tokens: usize) {
    let subject = Subject::new(name);
    let (prompt, host) = (&subject.prompt, NativeHost::default());
    let Some(cuts) = subject.cuts().pop().filter(|cuts| !cuts.is_empty()) else { panic!("{name} cannot be cut") };
    let models = subject.models(&cuts, backends);
    let ways = ways(tokens);
    let undisturbed = ways.each_ref().map(|options| {
        let mut chain = Chain::new(&models, seam, options);
        chain.prefill(prompt);
        chain.decode(prompt, tokens);
        chain.tokens
    });
    for at in 0..models.len() {
        let (options, undisturbed) = (&ways[at % 2], &undisturbed[at % 2]);
        let mut chain = Chain::new(&models, seam, options);
        chain.prefill(prompt);
        chain.decode(prompt, tokens / 3);
        let bytes = block_on(chain.links[at].session.export(0, &host)).unwrap().to_bytes();
        let saved = chain.links[at].kept.len();
        chain.decode(prompt, tokens / 2);
        // A repeated step returns the same output and does not advance.
        let link = &mut chain.links[at];
        let (given, end) = (link.kept[link.kept.len() - 1].clone(), link.session.position());
        let twice = [link.again(&given), link.again(&given)];
        assert!(twice[0] == twice[1] && link.session.position() == end, "{name}: a step asked for again");

        let model = subject.model(models[at].recipe().stage().clone(), spare);
        link.session = session(&model, seam, options);
        link.kept.clone().iter().for_each(|given| drop(link.again(given)));
        chain.decode(prompt, tokens - 1);
        assert_eq!(chain.tokens, undisturbed[..tokens - 1], "{name}: stage {at} replayed");
        let link = &mut chain.links[at];
        link.session = session(&model, seam, options);
        block_on(link.session.import(&Snapshot::from_bytes(&bytes).unwrap(), &host)).unwrap();
        assert_eq!(link.session.position(), link.kept[saved].position);
        link.kept.clone()[saved..].iter().for_each(|given| drop(link.again(given)));
        chain.decode(prompt, tokens);
        assert_eq!(chain.tokens, *undisturbed, "{name}: stage {at} from a snapshot");
    }
}

/// A sequence that is rewound and continued is the same, from as far back as states allow.
pub fn back(name: &str, backend: &Rc<dyn Backend>) {
    let subject = Subject::new(name);
    let (prompt, [options, _]) = (&subject.prompt, ways(8));
    let models = subject.models(&subject.cuts()[0], std::slice::from_ref(backend));
    let mut chain = Chain::new(&models, Seam::F16, &options);
    chain.prefill(prompt);
    chain.decode(prompt, 8);
    let text = chain.tokens.clone();
    for link in &mut chain.links {
        let states = link.session.model().recipe().states().unwrap();
        let rewrites = states.iter().any(|state| state.update != Update::Append);
        let to = link.session.rewind(PIECES[0]).unwrap();
        assert_eq!(to, if rewrites { 0 } else { PIECES[0] }, "{name}");
        // The prompt is computed again from that position.
        link.kept.truncate(PIECES.len());
        link.kept.clone().iter().filter(|given| given.position >= to).for_each(|given| drop(link.again(given)));
    }
    chain.tokens.truncate(1);
    chain.decode(prompt, 8);
    assert_eq!(chain.tokens, text, "{name}");
}
