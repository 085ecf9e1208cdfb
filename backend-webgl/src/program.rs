//! Compiled programs: all GL objects of a graph, and the loop that draws.

use crate::Shared;
use crate::gl::{Buffer, Framebuffer, Program as Linked, Rect, Texture, Timer, WEIGHT_UNIT};
use crate::kernel::{Draw, Kernel, Region, Source, Target};
use crate::profile::Times;
use crate::shader;
use crate::store::Storage;
use crate::watch::Watched;
use backend_api::op::At;
use backend_api::{
    Bound, Cover, Error, Graph, Held, KernelInfo, Made, Part, Piece, Place, Plan, Profile, Program, StepLimits,
    StepParams, TensorId,
};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// A texture of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Texturing {
    External(usize),
    Slot(usize),
    /// One of the scratch textures of the kernels that have so many of them, by its index.
    Scratch(usize, usize),
    /// One of those that are as large as some storage.
    Beside(usize),
}

/// One draw with its objects.
struct Pass {
    program: Rc<Linked>,
    framebuffer: usize,
    /// (unit, texture) of those operands that the passes before it did not leave bound.
    bindings: Vec<(u32, Texturing)>,
    codebooks: Vec<Rc<Buffer>>,
    offset: usize,
    bytes: usize,
    region: Region,
    /// Number of slices of a sliced draw, and the texels that they add up in.
    sum: Option<(usize, Vec<Rect>)>,
    /// Number of units that it can be cut into.
    units: u32,
    info: KernelInfo,
    /// Where the matrices lie that it makes.
    made: Vec<Texturing>,
}

/// State that passes share while they are made.
#[derive(Default)]
struct Draft {
    /// The parameters of all draws.
    arena: Vec<u8>,
    /// Framebuffers by their targets.
    sets: HashMap<Vec<Texturing>, usize>,
    /// Programs whose linking is under way.
    fresh: Vec<(String, Rc<Linked>)>,
    /// Textures that the passes so far leave bound to the texture units.
    bound: HashMap<u32, Texturing>,
}

/// A compiled graph.
pub(crate) struct Compiled {
    shared: Rc<Shared>,
    /// Storages of the externals, for each sequence.
    sequences: Vec<Vec<Rc<Storage>>>,
    slots: Vec<Texture>,
    /// By the number that a kernel has, so that those drawn together are of one size, as WebGL2 demands.
    scratch: BTreeMap<usize, Vec<Texture>>,
    /// Scratch textures of different sizes, for draws to storages of these sizes too.
    beside: Vec<Texture>,
    /// For each sequence, those that passes draw to.
    framebuffers: Vec<Vec<Rc<Framebuffer>>>,
    passes: Vec<Pass>,
    /// Cost of each pass.
    pieces: Vec<Piece>,
    params: Option<Buffer>,
    step: Buffer,
    limits: StepLimits,
}

/// Makes scratch textures that a kernel draws to together as large as the largest of them. Kernels with as many of them
/// share them, so that those of one may be larger than it asks for.
fn equalize(sizes: &mut [usize], kernel: &Kernel) {
    for draw in &kernel.draws {
        let together: Vec<usize> =
            draw.targets.iter().filter_map(|to| if let Target::Scratch(i) = to { Some(*i) } else { None }).collect();
        let largest = together.iter().filter_map(|i| sizes.get(*i)).max().copied().unwrap_or(0);
        for i in together {
            if let Some(size) = sizes.get_mut(i) {
                *size = largest;
            }
        }
    }
}

/// Lists what a draw reads and writes, with the bytes of all of it.
fn bound_by(draw: &Draw, kernel: &Kernel, node: &Cover, graph: &Graph) -> Vec<(Bound, u64)> {
    let result = |i: usize| node.outputs.get(i).map_or(0, |id| graph.tensor(*id).dense_bytes());
    // A texel between draws has one value.
    let between = |i: usize| (Bound::Between, kernel.scratch.get(i).map_or(0, |texels| 4 * *texels as u64));
    let read = draw.dense.iter().filter_map(|(_, source)| match *source {
        Source::Input(_) => None,
        Source::Scratch(i) => Some(between(i)),
        Source::Beside(i) => Some((Bound::Output(i), result(i))),
    });
    // What lies beside a result is touched as far as that is.
    let written = draw.targets.iter().map(|target| match *target {
        Target::Output(i) | Target::Beside(i) => (Bound::Output(i), result(i)),
        Target::Scratch(i) => between(i),
    });
    draw.operands.iter().copied().chain(read).chain(written).collect()
}

impl Compiled {
    pub(crate) fn new(shared: &Rc<Shared>, plan: &Plan, sequences: Vec<Vec<Rc<Storage>>>) -> Result<Compiled, Error> {
        let graph = plan.graph();
        let limits = StepLimits::of(graph, sequences.len());
        let kernels = plan.lower(|cover| shared.lower(graph, cover))?;
        let kernels: Vec<(&Cover, Kernel)> = plan.covers().iter().zip(kernels).collect();
        let texture = |what: &str, texels: usize| {
            let size = shared.fold.size(what, texels)?;
            shared.gl.texture(what, shared.layout.texels(), size)
        };
        let slots = (plan.slots().iter().enumerate())
            .map(|(i, size)| texture(&format!("slot {i}"), usize::try_from(*size).unwrap_or(usize::MAX)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sizes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (_, kernel) in &kernels {
            let largest = sizes.entry(kernel.scratch.len()).or_insert_with(|| kernel.scratch.clone());
            largest.iter_mut().zip(&kernel.scratch).for_each(|(largest, size)| *largest = (*largest).max(*size));
        }
        for (_, kernel) in &kernels {
            let Some(sizes) = sizes.get_mut(&kernel.scratch.len()) else { continue };
            equalize(sizes, kernel);
        }
        let scratch = (sizes.iter())
            .map(|(count, sizes)| {
                let textures =
                    sizes.iter().enumerate().map(|(i, size)| texture(&format!("scratch {i} of {count}"), *size));
                Ok((*count, textures.collect::<Result<Vec<_>, Error>>()?))
            })
            .collect::<Result<BTreeMap<_, _>, Error>>()?;
        let mut made = Compiled {
            shared: shared.clone(),
            framebuffers: sequences.iter().map(|_| Vec::new()).collect(),
            sequences,
            slots,
            scratch,
            beside: Vec::new(),
            passes: Vec::new(),
            pieces: Vec::new(),
            params: None,
            step: shared.gl.step_uniforms(size_of::<StepParams>())?,
            limits,
        };
        let (mut draft, fullest) = (Draft::default(), limits.fullest());
        for (node, kernel) in &kernels {
            for draw in &kernel.draws {
                let pass = made.pass(plan, node, kernel, draw, &mut draft)?;
                made.passes.push(pass);
            }
            let passes = made.passes[made.pieces.len()..].iter();
            let kernels = passes.map(|pass| (pass.info.traffic.of(&fullest), pass.units));
            made.pieces.extend(Piece::of_cover(graph, node, kernels));
        }
        for (name, program) in &draft.fresh {
            if let Err(error) = program.finish(name) {
                shared.programs.borrow_mut().clear();
                return Err(error);
            }
        }
        made.params = Some(shared.gl.uniforms(&draft.arena)?);
        shared.gl.check("compiling", 0)?;
        Ok(made)
    }

    fn pass(
        &mut self,
        plan: &Plan,
        node: &Cover,
        kernel: &Kernel,
        draw: &Draw,
        draft: &mut Draft,
    ) -> Result<Pass, Error> {
        let shared = self.shared.clone();
        let Draft { arena, sets, fresh, bound } = draft;
        let place = |ids: &[TensorId], i: usize| match ids.get(i).map(|id| plan.place(*id)) {
            Some(Some(Place::External(at))) => Ok(Texturing::External(at)),
            Some(Some(Place::Slot(at))) => Ok(Texturing::Slot(at)),
            _ => Err(Error::Invalid(format!("{}: operand {i} is missing", node.form.name()))),
        };
        let mut beside = |i: usize| self.beside(place(&node.outputs, i)?);
        let mut source = |from: &Source| match from {
            Source::Input(i) => place(&node.inputs, *i),
            Source::Scratch(i) => Ok(Texturing::Scratch(kernel.scratch.len(), *i)),
            Source::Beside(i) => beside(*i),
        };
        let mut bindings = Vec::new();
        for (unit, (_, from)) in (0..).zip(&draw.dense) {
            bindings.push((unit, source(from)?));
        }
        for (unit, (from, _)) in (WEIGHT_UNIT..).zip(&draw.weights) {
            bindings.push((unit, source(from)?));
        }
        let target = |to: &Target| match to {
            Target::Output(i) => place(&node.outputs, *i),
            Target::Scratch(i) => Ok(Texturing::Scratch(kernel.scratch.len(), *i)),
            Target::Beside(i) => beside(*i),
        };
        let targets = draw.targets.iter().map(target).collect::<Result<Vec<_>, _>>()?;
        if bindings.iter().any(|(_, texture)| targets.contains(texture)) {
            return Err(Error::Invalid(format!("{} would read and write one texture", node.form.name())));
        }
        bindings.retain(|(unit, texture)| bound.insert(*unit, *texture) != Some(*texture));
        let made_in = targets.clone();
        let framebuffer = match sets.get(&targets) {
            Some(at) => *at,
            None => {
                let at = sets.len();
                self.framebuffer(&targets)?;
                sets.insert(targets, at);
                at
            }
        };
        let name = draw.name(shared.layout);
        let patched = |text: &str| shared.patch.map_or_else(|| text.to_owned(), |patch| patch.apply(text));
        let text = shader::assemble(draw, shared.layout, [&shared.fold, &shared.weight_fold]);
        let text = patched(&text.map_err(|why| Error::Driver(format!("shader {name}: {why}")))?);
        let cached = shared.programs.borrow().get(&text).cloned();
        let program = match cached {
            Some(program) => program,
            None => {
                let program = Rc::new(shared.gl.program(&patched(shader::VERTEX), &text)?);
                shared.programs.borrow_mut().insert(text, program.clone());
                fresh.push((name.clone(), program.clone()));
                program
            }
        };
        let codebooks =
            draw.codebooks().into_iter().map(|codebook| shared.codebook(codebook)).collect::<Result<_, _>>()?;
        arena.resize(arena.len().next_multiple_of(shared.gl.limits().uniform_align as usize), 0);
        let offset = arena.len();
        for (_, word) in &draw.params {
            arena.extend(word.bytes());
        }
        // A std140 block is a whole number of 16-byte vectors.
        arena.resize(arena.len().next_multiple_of(16), 0);
        let (first, texels) = match draw.region {
            Region::Whole(texels) => (0, texels),
            Region::Part(first, end) => (first, end),
            Region::Append { unit, max, .. } => (0, unit * max),
        };
        let rect = shared.fold.rect(first, texels);
        let grid = [rect.width, rect.height, 1];
        let mut info = KernelInfo::new(plan.graph(), node, name, grid, &bound_by(draw, kernel, node, plan.graph()));
        let mut made = Vec::new();
        for (to, texture) in draw.targets.iter().zip(made_in) {
            let matrix = match to {
                Target::Output(i) => node.outputs.get(*i).and_then(|id| Made::of(plan.graph().tensor(*id))),
                Target::Scratch(_) => {
                    draw.out_shape().map(|(rows, cols)| Made { name: draw.shader.into(), rows, cols })
                }
                Target::Beside(_) => None,
            };
            if let Some(matrix) = matrix {
                info.made.push(matrix);
                made.push(texture);
            }
        }
        let (bytes, region) = (arena.len() - offset, draw.region);
        // Where rows are appended follows from the step.
        let units = if matches!(region, Region::Append { .. }) { 1 } else { rect.units() };
        let sum = (draw.slices > 1).then(|| (draw.slices, shared.fold.rects(0, texels)));
        Ok(Pass { program, framebuffer, bindings, codebooks, offset, bytes, region, sum, units, info, made })
    }

    /// The scratch texture of a texture's size.
    fn beside(&mut self, of: Texturing) -> Result<Texturing, Error> {
        let like = self.texture(of, 0)?;
        let size = [like.width, like.height, like.layers];
        let found = self.beside.iter().position(|t| [t.width, t.height, t.layers] == size);
        let at = found.unwrap_or(self.beside.len());
        if found.is_none() {
            self.beside.push(self.shared.gl.texture("scratch beside a state", self.shared.layout.texels(), size)?);
        }
        Ok(Texturing::Beside(at))
    }

    /// Makes what draws to these textures, for each sequence; one for all of them where none is a storage.
    fn framebuffer(&mut self, targets: &[Texturing]) -> Result<(), Error> {
        let is_shared = !targets.iter().any(|target| matches!(target, Texturing::External(_)));
        let mut made: Vec<Rc<Framebuffer>> = Vec::with_capacity(self.sequences.len());
        for sequence in 0..self.sequences.len() {
            if let Some(first) = made.first().filter(|_| is_shared) {
                made.push(first.clone());
                continue;
            }
            let textures = targets.iter().map(|t| self.texture(*t, sequence)).collect::<Result<Vec<_>, _>>()?;
            made.push(Rc::new(self.shared.gl.framebuffer(&textures)?));
        }
        self.framebuffers.iter_mut().zip(made).for_each(|(of, made)| of.push(made));
        Ok(())
    }

    fn texture(&self, at: Texturing, sequence: usize) -> Result<&Texture, Error> {
        let found = match at {
            Texturing::External(i) => self.sequences.get(sequence).and_then(|of| of.get(i)).map(|s| &s.texture),
            Texturing::Slot(i) => self.slots.get(i),
            Texturing::Scratch(count, i) => self.scratch.get(&count).and_then(|textures| textures.get(i)),
            Texturing::Beside(i) => self.beside.get(i),
        };
        found.ok_or_else(|| Error::Invalid("a texture of the plan is missing".into()))
    }

    /// The rectangle that a pass draws in this step; `None` if nothing is to be drawn.
    fn rect(&self, region: &Region, params: &StepParams) -> Option<Rect> {
        let (first, end) = match *region {
            Region::Whole(texels) => (0, texels),
            Region::Part(first, end) => (first, end),
            Region::Append { at, unit, max, texels } => {
                let (row, rows) = match at {
                    At::Position => (params.position as usize, max.min(params.rows as usize)),
                    At::Next => (params.position as usize + params.rows as usize, 1),
                    At::EachNext => (params.position as usize + 1, max.min(params.rows as usize)),
                };
                (row.saturating_mul(unit), (row + rows).saturating_mul(unit).min(texels))
            }
        };
        (first < end).then(|| self.shared.fold.rect(first, end))
    }

    /// Draws some passes, of a single one perhaps some units, each followed by who watches.
    fn run(&self, params: &StepParams, range: Range<usize>, units: Option<&Range<u32>>) -> Result<(), Error> {
        let watcher = self.shared.watcher.borrow().clone();
        let Some(watcher) = watcher else { return self.run_passes(params, range, units, None) };
        let sequence = params.sequence as usize;
        for kernel in range {
            self.run_passes(params, kernel..kernel + 1, units, None)?;
            let pass = &self.passes[kernel];
            if units.is_some_and(|units| units.end < pass.units) {
                continue;
            }
            let textures = pass.made.iter().map(|at| self.texture(*at, sequence)).collect::<Result<Vec<_>, _>>()?;
            let _entered = self.shared.gl.enter()?;
            let (kernels, info, shared) = (self.passes.len(), &pass.info, &*self.shared);
            watcher(Watched { kernel, kernels, info, params, textures, shared });
        }
        Ok(())
    }

    /// Draws some passes, of a single one perhaps some units, with a timer around each if there is a place for them.
    fn run_passes(
        &self,
        params: &StepParams,
        range: Range<usize>,
        units: Option<&Range<u32>>,
        mut timers: Option<&mut Vec<Timer>>,
    ) -> Result<(), Error> {
        self.limits.check(params)?;
        let missing =
            || Error::Invalid(format!("the program has no kernels {range:?} ({units:?}); cut its own pieces"));
        let passes = self.passes.get(range.clone()).ok_or_else(missing)?;
        if let (Some(units), Some(pass)) = (units, passes.first())
            && (pass.units == 1 || units.end > pass.units)
        {
            return Err(missing());
        }
        let (gl, sequence) = (&self.shared.gl, params.sequence as usize);
        let _entered = gl.enter()?;
        // A step is flushed by what follows it, so that a read after it costs no flush of its own.
        gl.flush_deferred();
        self.step.update(bytemuck::bytes_of(params));
        gl.bind_step(&self.step);
        let Some(arena) = &self.params else { return Ok(()) };
        // Whatever ran since the part before, these passes find bound what those before them leave.
        for (unit, texture) in self.passes[..range.start].iter().flat_map(|pass| &pass.bindings) {
            gl.bind(*unit, self.texture(*texture, sequence)?);
        }
        let mut before: Option<(&Pass, Rect)> = None;
        for pass in passes {
            if let Some(timers) = &mut timers {
                timers.push(gl.timer()?);
            }
            for (unit, texture) in &pass.bindings {
                gl.bind(*unit, self.texture(*texture, sequence)?);
            }
            if let Some(rect) = self.rect(&pass.region, params) {
                let band = units.map(|units| rect.band(units));
                self.draw(pass, (rect, band), arena, before, sequence);
                before = Some((pass, rect));
            }
            if let Some(timer) = timers.as_ref().and_then(|timers| timers.last()) {
                timer.end();
            }
        }
        gl.defer_flush();
        Ok(())
    }

    /// Draws one pass, whose textures are bound; `before` is the one drawn last, whose state it may share.
    fn draw(
        &self,
        pass: &Pass,
        (rect, band): (Rect, Option<Rect>),
        arena: &Buffer,
        before: Option<(&Pass, Rect)>,
        sequence: usize,
    ) {
        let gl = &self.shared.gl;
        if before.is_none_or(|(before, _)| !Rc::ptr_eq(&before.program, &pass.program)) {
            gl.use_program(&pass.program);
        }
        if before.is_none_or(|(before, _)| before.framebuffer != pass.framebuffer)
            && let Some(framebuffer) = self.framebuffers.get(sequence).and_then(|of| of.get(pass.framebuffer))
        {
            gl.draw_to(framebuffer);
        }
        if before.is_none_or(|(_, before)| before != rect) {
            gl.viewport(rect);
        }
        gl.bind_params(arena, pass.offset, pass.bytes);
        gl.bind_codebooks(&pass.codebooks);
        if let Some(band) = band {
            gl.confine(band);
        }
        match &pass.sum {
            Some((slices, texels)) => gl.draw_sum(texels, *slices, band),
            None => gl.draw(),
        }
        if band.is_some() {
            gl.release();
        }
    }
}

impl Program for Compiled {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        self.run(params, 0..self.passes.len(), None)
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn part(&mut self, params: &StepParams, part: &Part) -> Result<(), Error> {
        match part {
            Part::Kernels(range) => self.run(params, range.clone(), None),
            Part::Units(at, units) => self.run(params, *at..at + 1, Some(units)),
        }
    }

    fn profile(&mut self, runs: &[StepParams]) -> Result<Option<Box<dyn Profile>>, Error> {
        let gl = self.shared.gl.clone();
        let [params] = runs else { return Ok(None) };
        if !gl.limits().timers {
            return Ok(None);
        }
        let mut timers = Vec::with_capacity(self.passes.len());
        self.run_passes(params, 0..self.passes.len(), None, Some(&mut timers))?;
        Ok(Some(Box::new(Times { gl, timers })))
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.passes.iter().map(|pass| pass.info.clone()).collect()
    }

    fn held(&self) -> Vec<Held> {
        let scratch = self.scratch.values().flatten().chain(&self.beside);
        let parameters = self.params.iter().chain([&self.step]);
        vec![
            Held::of("slots", self.slots.iter().map(Texture::size)),
            Held::of("scratch", scratch.map(Texture::size)),
            Held::of("parameters", parameters.map(|buffer| buffer.bytes as u64)),
        ]
    }
}
