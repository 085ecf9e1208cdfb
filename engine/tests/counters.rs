//! Bounds on the costs of decoding and loading: dispatches, submits, objects, bytes, allocations, memory. It is a
//! single test, because allocations are counted for the whole process.

use std::alloc::System;
use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use anygpu::native::{NativeHost, block_on};
use backend_api::{
    Backend, BackendInfo, Codec, Cover, Error, Graph, KernelInfo, Matcher, Plan, Program, ReadId, Stats, StepParams,
    StorageDesc, StorageId, Tensor, Unsupported,
};
use backend_webgl::Layout::{Bits, Packed, R32f};
use model::{ByteSource, GenerateOptions, Gguf, KvCache, Model, Recipe, Session, SourceError};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const MIB: u64 = 1 << 20;
/// Steps between two reads.
const INTERVAL: usize = 4;
/// Number of last steps whose allocations are checked.
const STEADY: usize = 24;

/// A backend that records the heap allocations of every step.
struct Counted {
    inner: Rc<dyn Backend>,
    steps: Rc<RefCell<Vec<usize>>>,
}

struct CountedProgram {
    inner: Box<dyn Program>,
    steps: Rc<RefCell<Vec<usize>>>,
}

impl Program for CountedProgram {
    fn step(&mut self, params: &StepParams) -> Result<(), Error> {
        let region = Region::new(ALLOCATOR);
        let result = self.inner.step(params);
        let change = region.change();
        self.steps.borrow_mut().push(change.allocations + change.reallocations);
        result
    }

    fn kernels(&self) -> Vec<KernelInfo> {
        self.inner.kernels()
    }
}

impl Backend for Counted {
    fn info(&self) -> &BackendInfo {
        self.inner.info()
    }
    fn matchers(&self) -> &[Matcher] {
        self.inner.matchers()
    }
    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.inner.supports(graph, cover)
    }
    fn equal_results(&self) -> bool {
        self.inner.equal_results()
    }
    fn slot_size(&self, tensor: &Tensor) -> u64 {
        self.inner.slot_size(tensor)
    }
    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        self.inner.storage_bytes(desc)
    }
    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        self.inner.create(desc)
    }
    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        self.inner.write(id, first_row, bytes)
    }
    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        self.inner.read(id, first_row, rows)
    }
    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        self.inner.try_read(read, out)
    }
    fn destroy(&self, id: StorageId) {
        self.inner.destroy(id);
    }
    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        let inner = self.inner.compile_sequences(plan, sequences)?;
        Ok(Box::new(CountedProgram { inner, steps: self.steps.clone() }))
    }
    fn ready(&self) -> Result<bool, Error> {
        self.inner.ready()
    }
    fn idle(&self) -> Result<bool, Error> {
        self.inner.idle()
    }
    fn stats(&self) -> Stats {
        self.inner.stats()
    }
}

/// A file source, so that the memory of loading can be measured.
struct FileSource(std::fs::File, u64);

impl ByteSource for FileSource {
    fn len(&self) -> u64 {
        self.1
    }

    fn read_at<'a>(
        &'a self,
        offset: u64,
        buffer: &'a mut [u8],
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), SourceError>> + 'a>> {
        let len = buffer.len() as u64;
        let failed = |e: std::io::Error| SourceError { offset, len, reason: e.to_string() };
        let result = self.0.read_exact_at(buffer, offset).map_err(failed);
        Box::pin(std::future::ready(result))
    }
}

fn heap() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.bytes_allocated as i64 + stats.bytes_reallocated as i64 - stats.bytes_deallocated as i64).max(0) as u64
}

/// Exact costs of a token of the built-in model.
struct Costs {
    per_block: u64,
    besides: u64,
    /// Most allocations in [`STEADY`] steps; absent if wgpu's own allocations are counted as well.
    allocations: Option<usize>,
    /// Whether weights are in device memory rather than the host's.
    on_device: bool,
}

/// Checks the costs of decoding; returns the tokens.
fn measure(name: &str, backend: Rc<dyn Backend>, kv_cache: KvCache, costs: &Costs) -> Vec<u32> {
    // Half precision is for long contexts.
    let (n_ctx, bytes) = if kv_cache == KvCache::coded(Codec::F16) { (2048, 2) } else { (512, 4) };
    let (file, blocks) = ("gab-q4_0.gguf", 6);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/").to_owned() + file;
    let open = std::fs::File::open(&path).unwrap();
    let source = FileSource(open, std::fs::metadata(&path).unwrap().len());
    let steps = Rc::new(RefCell::new(Vec::new()));
    let counted: Rc<dyn Backend> = Rc::new(Counted { inner: backend, steps: steps.clone() });
    let host = NativeHost::default();

    let start = heap();
    let mut peak = start;
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let recipe = Recipe::new(&gguf, Some(n_ctx)).unwrap().with_kv_cache(kv_cache);
    let mut progress = |_, _| peak = peak.max(heap());
    let model = block_on(Model::load(&source, recipe, counted.clone(), &host, &mut progress)).unwrap();
    let held = peak - start;
    println!("{name}: loading held at most {:.1} MiB of host memory", held as f64 / MIB as f64);
    if costs.on_device {
        assert!(held <= 64 * MIB, "{name}: loading held {held} bytes");
    }

    let mut session = Session::new(Rc::new(model)).unwrap();
    let options = GenerateOptions {
        max_tokens: Some(48),
        stop_tokens: Some(Vec::new()),
        fetch_interval: Some(INTERVAL),
        draft_max: Some(0),
        ..GenerateOptions::default()
    };
    let generation = block_on(session.generate(&[956, 1352, 259, 490], &options, None, &host, &mut |_| {})).unwrap();
    assert_eq!(generation.tokens.len(), 48);
    let (n, stats) = (generation.steady_steps as u64, generation.steady);
    assert!(n >= 32, "only {n} steady steps");
    println!("{name}: {n} steps, {stats:?}");
    assert_eq!(stats.dispatches, n * (blocks * costs.per_block + costs.besides), "{name}");
    assert!(stats.submits <= n, "{name}: {} submits for {n} steps", stats.submits);
    assert_eq!(stats.objects, 0, "{name}");
    assert!(stats.uploaded <= n * 256 && stats.read_back <= n * 64, "{name}: {stats:?}");
    if costs.on_device {
        let weights: u64 = gguf.tensors.iter().map(|t| t.bytes).sum();
        let cache = blocks * 2 * n_ctx as u64 * 512 * bytes;
        let limit = (weights * 11 / 10 + cache + 16 * MIB).min(if kv_cache == KvCache::coded(Codec::F16) {
            48 * MIB
        } else {
            u64::MAX
        });
        assert!(stats.memory <= limit, "{name}: {} bytes of device memory, at most {limit}", stats.memory);
    }

    let steps = steps.borrow();
    let steady = &steps[steps.len() - STEADY..];
    println!("{name}: heap allocations a step {steady:?}");
    match costs.allocations {
        Some(most) => assert!(steady.iter().sum::<usize>() <= most, "{name}: {steady:?}"),
        // wgpu allocates to encode and submit. A read shares the submit of the step before it, so only the sum over a
        // fetch interval is constant. Growth would move the median of the later half. wgpu sometimes grows and cleans
        // its own tables, which one interval in four may show.
        None => {
            let interval = INTERVAL;
            let sums: Vec<usize> = steady.chunks(interval).map(|w| w.iter().sum()).collect();
            let late = median(&sums[sums.len() / 2..]);
            let usual = median(&sums);
            let odd = sums.iter().filter(|sum| sum.abs_diff(usual) > 2 * interval).count();
            assert!(usual > 0 && late.abs_diff(usual) <= interval && 4 * odd <= sums.len(), "{name}: {steady:?}");
        }
    }
    generation.tokens
}

fn median(values: &[usize]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[test]
fn decoding_and_loading_cost_what_they_may() {
    let skip = std::env::var("ANYGPU_SKIP").unwrap_or_default();
    let skipped = |name: &str| {
        let named = skip.split(',').any(|s| s.trim() == name);
        if named {
            println!("SKIPPED: ANYGPU_SKIP names {name}");
        }
        named
    };
    // The queue from which rayon takes work is a list of blocks of 63.
    let [full, half] =
        [(KvCache::default(), 1, 0), (KvCache::coded(Codec::F16), 3, 1)].map(|(kv_cache, threads, allocations)| {
            let options = reference_cpu::Options { threads: NonZeroUsize::new(threads), ..Default::default() };
            let costs = Costs { per_block: 6, besides: 3, allocations: Some(allocations), on_device: false };
            let name = format!("cpu {kv_cache:?}, threads: {threads}");
            measure(&name, Rc::new(reference_cpu::Cpu::new(options)), kv_cache, &costs)
        });
    let expected = |kv_cache| if kv_cache == KvCache::coded(Codec::F16) { &half } else { &full };
    if !skipped("webgl") {
        let floats = [Packed, R32f, Bits].map(|layout| (layout, KvCache::default()));
        for (layout, kv_cache) in floats.into_iter().chain([Packed, Bits].map(|l| (l, KvCache::coded(Codec::F16)))) {
            let backend = backend_webgl::WebGl::open(backend_webgl::Options { layout, ..Default::default() }).unwrap();
            // Words are encoded from rows that were drawn before: the projection, keys and values, and each cache
            // separately.
            let encoded = 3 * u64::from(layout == Bits && kv_cache != KvCache::default());
            let costs = Costs { per_block: 6 + encoded, besides: 4, allocations: Some(0), on_device: true };
            let name = format!("webgl {layout:?} {kv_cache:?}");
            assert_eq!(measure(&name, Rc::new(backend), kv_cache, &costs), *expected(kv_cache), "{name}");
        }
    }
    if !skipped("webgpu") {
        for kv_cache in [KvCache::default(), KvCache::coded(Codec::F16)] {
            let backend = block_on(backend_webgpu::WebGpu::open(Default::default())).unwrap();
            let costs = Costs { per_block: 5, besides: 3, allocations: None, on_device: true };
            let name = format!("webgpu {kv_cache:?}");
            assert_eq!(measure(&name, Rc::new(backend), kv_cache, &costs), *expected(kv_cache), "{name}");
        }
    }
}
