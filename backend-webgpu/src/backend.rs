//! The backend: a device, its storages, and what programs share.

use crate::Options;
use crate::fault::Faults;
use crate::kernel::Kernel;
use crate::lower::{FEW, MATCHERS, OWN, lower_cover};
use crate::pipeline::Pipelines;
use crate::program::{self, GpuProgram};
use crate::read::{Reads, Rows};
#[cfg(target_arch = "wasm32")]
use crate::staging::Staging;
use crate::storage::{Chunk, Limits, chunks};
use crate::subgroup;
use crate::tuning::Tuning;
use crate::watch::{Watched, Watcher};
use backend_api::format::Codebook;
use backend_api::testing::ShaderPatch;
use backend_api::{
    Backend, BackendInfo, Cover, DType, Error, Graph, Matcher, Plan, Products, Program, ReadId, Shape, Stats,
    StorageDesc, StorageId, Tensor, Tunable, Tuned, Unsupported, check_sequences, host_rows,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tokens that drafts must promise to save. Compiling a program of several rows took half a second on the fastest GPU at
/// hand, or some hundred of its steps; slower GPUs make up for it with far fewer.
const VERIFY_AFTER: usize = 64;

/// Bytes of writes after which they are submitted, so that the driver can free its staging memory.
const FLUSH_BYTES: u64 = 16 << 20;
/// How many polls pass before the browser is made to check for finished work: checking more often costs more than it brings.
const NUDGE: u32 = 4;
/// Bytes of one upload.
const UPLOAD_BYTES: usize = 4 << 20;

/// The counters of one backend, shared with its programs.
#[derive(Debug, Default)]
pub struct Counters {
    pub dispatches: Cell<u64>,
    pub submits: Cell<u64>,
    pub objects: Cell<u64>,
    pub uploaded: Cell<u64>,
    pub read_back: Cell<u64>,
    pub memory: Cell<u64>,
}

/// Adds to a counter.
pub fn count(counter: &Cell<u64>, n: u64) {
    counter.set(counter.get().saturating_add(n));
}

/// Returns the size of a buffer for so many bytes: whole texels, and at least one.
fn buffer_bytes(bytes: u64) -> u64 {
    bytes.max(16).next_multiple_of(16)
}

/// The bytes of a dense storage.
fn dense_bytes(desc: &StorageDesc) -> Result<u64, Error> {
    let (rows, _) = host_rows(&desc.shape);
    Ok((rows + desc.guard_rows) as u64 * device_row(desc)? as u64)
}

/// Bytes of a row as the device holds it.
fn device_row(desc: &StorageDesc) -> Result<usize, Error> {
    let (_, cols) = host_rows(&desc.shape);
    match desc.dtype {
        DType::Coded(codec) => Ok(codec.device_row_bytes(cols)),
        dtype => dtype.row_bytes(cols),
    }
}

/// A storage: one buffer, or one for each chunk of a packed weight.
pub struct Storage {
    pub desc: StorageDesc,
    pub chunks: Vec<Chunk>,
    pub buffers: Vec<wgpu::Buffer>,
    /// Where it begins, if it is a view of another one, which has the memory.
    pub view: Option<u64>,
}

impl Storage {
    fn bytes(&self) -> u64 {
        self.buffers.iter().map(wgpu::Buffer::size).sum()
    }

    /// Its first byte in the first buffer.
    pub fn begin(&self) -> u64 {
        self.view.unwrap_or(0)
    }

    /// Rows, guard rows included, and bytes of a row as the host writes it.
    fn rows(&self) -> Result<(usize, usize), Error> {
        let (rows, cols) = host_rows(&self.desc.shape);
        Ok((rows + self.desc.guard_rows, self.desc.dtype.row_bytes(cols)?))
    }

    /// The bytes on the device of `rows` rows from `first`.
    ///
    /// *Errors*: they are out of range.
    fn range(&self, first: usize, rows: usize) -> Result<(u64, u64), Error> {
        let ((all, _), row) = (self.rows()?, device_row(&self.desc)?);
        if first.checked_add(rows).is_none_or(|end| end > all) {
            return Err(Error::Invalid(format!(
                "rows {first}+{rows} are outside of {}, which has {all}; ask for rows within it",
                self.desc.name
            )));
        }
        Ok((self.begin() + first as u64 * row as u64, rows as u64 * row as u64))
    }
}

/// State that a backend shares with its programs.
pub struct Shared {
    pub device: wgpu::Device,
    /// Whether the device goes with the backend.
    owned: bool,
    pub queue: wgpu::Queue,
    pub faults: Faults,
    pub counters: Counters,
    pub limits: Limits,
    pub tuning: Tuning,
    pub uniform_align: u64,
    pub pipelines: RefCell<Pipelines>,
    /// The last step, encoded but not submitted: the copy of a read that follows it joins its submit.
    pub pending: RefCell<Option<wgpu::CommandEncoder>>,
    #[cfg(target_arch = "wasm32")]
    pub staging: Staging,
    pub patch: Option<ShaderPatch>,
    pub reads: RefCell<Reads>,
    /// Callback that runs after each dispatch.
    pub watcher: RefCell<Option<Watcher>>,
    polls: Cell<u32>,
    /// Those that programs have needed so far, by name.
    codebooks: RefCell<HashMap<&'static str, wgpu::Buffer>>,
}

impl Shared {
    /// The kernels of a cover.
    ///
    /// *Errors*: why there are none.
    pub fn lower(&self, graph: &Graph, cover: &Cover) -> Result<Vec<Kernel>, Unsupported> {
        let Limits { subgroup, .. } = self.limits;
        let limits = Limits { subgroup: if self.tuning.subgroups == 0 { 1 } else { subgroup }, ..self.limits };
        lower_cover(graph, cover, limits, self.tuning)
    }

    /// Makes a buffer filled with zeros.
    ///
    /// *Errors*: the device's limit, out of memory, device lost.
    pub fn buffer(&self, what: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, Error> {
        let have = self.device.limits().max_buffer_size;
        if bytes > have {
            let remedy = "use a smaller context, batch or model, or another backend";
            return Err(Error::Limit { what: format!("the buffer of {what} (bytes)"), need: bytes, have, remedy });
        }
        self.faults.check(what, bytes)?;
        let size = buffer_bytes(bytes);
        let label = Some(what);
        let buffer =
            self.device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false });
        self.faults.check(what, bytes)?;
        count(&self.counters.objects, 1);
        count(&self.counters.memory, size);
        Ok(buffer)
    }

    /// The buffer of a codebook, which is made when a program needs it first.
    ///
    /// *Errors*: as for any buffer.
    pub fn codebook(&self, codebook: &Codebook) -> Result<wgpu::Buffer, Error> {
        if let Some(buffer) = self.codebooks.borrow().get(codebook.name) {
            return Ok(buffer.clone());
        }
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let buffer = self.buffer(codebook.name, codebook.bytes.len() as u64, usage)?;
        self.queue.write_buffer(&buffer, 0, codebook.bytes);
        count(&self.counters.uploaded, codebook.bytes.len() as u64);
        self.codebooks.borrow_mut().insert(codebook.name, buffer.clone());
        Ok(buffer)
    }

    /// Submits what an encoder holds.
    pub fn submit(&self, encoder: wgpu::CommandEncoder) {
        self.flush();
        self.queue.submit([encoder.finish()]);
        count(&self.counters.submits, 1);
    }

    /// Submits the last step if that has not happened yet, and whatever was written.
    pub fn submit_pending(&self) {
        self.submit_step();
        self.flush();
    }

    fn submit_step(&self) {
        if let Some(encoder) = self.pending.borrow_mut().take() {
            self.submit(encoder);
        }
    }

    /// Sends on its way what browsers collect of writes.
    fn flush(&self) {
        #[cfg(target_arch = "wasm32")]
        self.staging.flush(self);
    }

    /// Writes bytes to a buffer before whatever is submitted later.
    fn put(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) {
        count(&self.counters.uploaded, bytes.len() as u64);
        #[cfg(target_arch = "wasm32")]
        if self.staging.write(self, buffer, offset, bytes) {
            return;
        }
        self.queue.write_buffer(buffer, offset, bytes);
    }

    /// Frees a buffer's memory.
    pub fn free(&self, buffer: &wgpu::Buffer) {
        self.submit_pending();
        self.counters.memory.set(self.counters.memory.get().saturating_sub(buffer.size()));
        buffer.destroy();
    }

    /// Lets the driver run callbacks; never waits. In browsers the event loop does it, and what is asked for is to look
    /// whether work is done: Chromium does so every 2 ms, but also when something is submitted.
    pub fn poll(&self) -> Result<(), Error> {
        if cfg!(target_arch = "wasm32") {
            self.polls.set(self.polls.get().wrapping_add(1));
            if self.polls.get().is_multiple_of(NUDGE) {
                self.queue.submit([]);
            }
        }
        let polled = self.device.poll(wgpu::PollType::Poll);
        self.faults.check_patiently("a step", 0)?;
        polled.map(drop).map_err(|e| Error::Driver(e.to_string()))
    }
}

impl Drop for Shared {
    /// Frees all that is left at once. A dropped buffer is only collected at some time in browsers.
    fn drop(&mut self) {
        if self.owned {
            self.device.destroy();
        }
    }
}

/// Returns the instance of this process. NVIDIA's driver can be loaded only about twenty times by one process: after that, no
/// adapter is found.
#[cfg(not(target_arch = "wasm32"))]
fn instance() -> wgpu::Instance {
    static INSTANCE: OnceLock<wgpu::Instance> = OnceLock::new();
    INSTANCE.get_or_init(|| wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())).clone()
}

#[cfg(target_arch = "wasm32")]
fn instance() -> wgpu::Instance {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle())
}

/// Refuses integer products where the language of shaders lacks what they need.
fn check_products(instance: &wgpu::Instance, products: Products) -> Result<(), Error> {
    let packed = wgpu::WgslLanguageFeatures::Packed4x8IntegerDotProduct;
    if products == Products::Int8 && !instance.wgsl_language_features().contains(packed) {
        let reason = "the browser lacks packed_4x8_integer_dot_product, which integer products need; update it, or ask \
                      for products in f32";
        return Err(Error::Absent { backend: "webgpu", reason: reason.into() });
    }
    Ok(())
}

/// Returns the names of an adapter and its driver.
fn name_of(about: &wgpu::AdapterInfo) -> String {
    [about.name.as_str(), about.driver.as_str(), about.driver_info.as_str()].map(str::trim).join(" ")
}

/// The WebGPU backend.
pub struct WebGpu {
    info: BackendInfo,
    shared: Rc<Shared>,
    storages: RefCell<HashMap<u32, Storage>>,
    next: Cell<u32>,
    unflushed: Cell<u64>,
    /// The number of submits that are known to be done, and the one that is waited for.
    done: Arc<AtomicU64>,
    watched: Cell<u64>,
}

impl WebGpu {
    /// Opens the device that the system thinks fastest.
    ///
    /// *Errors*: [`Error::Absent`] if there is no adapter or it gives no device.
    pub async fn open(options: Options) -> Result<WebGpu, Error> {
        WebGpu::of(options, None).await
    }

    pub(crate) async fn of(options: Options, patch: Option<ShaderPatch>) -> Result<WebGpu, Error> {
        let absent = |reason: String| Error::Absent { backend: "webgpu", reason };
        #[cfg(target_arch = "wasm32")]
        let adapter_name = crate::web::adapter_name().await.map_err(absent)?;
        let instance = instance();
        let wanted = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            ..Default::default()
        };
        check_products(&instance, options.products)?;
        let adapter = instance.request_adapter(&wanted).await.map_err(|e| {
            absent(format!(
                "no adapter was found ({e}); install a Vulkan, Metal or Direct3D 12 driver (Mesa's lavapipe does), or \
                 use a browser with WebGPU turned on"
            ))
        })?;
        let offered = adapter.limits();
        let required_limits = wgpu::Limits {
            max_buffer_size: offered.max_buffer_size,
            max_storage_buffer_binding_size: offered.max_storage_buffer_binding_size,
            // Tells what kind of device it is; no kernel needs more than every device has.
            max_compute_workgroup_storage_size: offered.max_compute_workgroup_storage_size,
            ..wgpu::Limits::default()
        };
        let optional = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SUBGROUP;
        let required_features =
            if options.optional_features { adapter.features() & optional } else { wgpu::Features::empty() };
        let descriptor =
            wgpu::DeviceDescriptor { label: Some("anygpu"), required_limits, required_features, ..Default::default() };
        let (device, queue) = adapter.request_device(&descriptor).await.map_err(|e| {
            absent(format!("the adapter gives no device with the default limits of WebGPU ({e}); update its driver"))
        })?;
        #[cfg(not(target_arch = "wasm32"))]
        let adapter_name = name_of(&adapter.get_info());
        Ok(WebGpu::on(device, queue, adapter_name, options, patch, true).await)
    }

    /// On a device that an application has already, say because it draws with it. It stays the application's and may be
    /// used beside the backend, whose submits are its own; but the backend listens for its errors and its loss, in the
    /// place of others that did. Storages are as large as the device's limits allow, subgroups and timestamps are used if it
    /// was made with them.
    ///
    /// *Errors*: [`Error::Absent`] if the browser lacks what integer products need.
    pub async fn from_device(device: wgpu::Device, queue: wgpu::Queue, options: Options) -> Result<WebGpu, Error> {
        let instance = instance();
        check_products(&instance, options.products)?;
        let name = name_of(&device.adapter_info());
        Ok(WebGpu::on(device, queue, name, options, None, false).await)
    }

    async fn on(
        device: wgpu::Device,
        queue: wgpu::Queue,
        adapter_name: String,
        options: Options,
        patch: Option<ShaderPatch>,
        owned: bool,
    ) -> WebGpu {
        let faults = Faults::listen(&device);
        let limits = device.limits();
        let binding = limits.max_storage_buffer_binding_size;
        let weights = options.max_binding.map_or(binding, |most| most.min(binding));
        let about = device.adapter_info();
        let subgroup = subgroup::width(&device, &queue, &about).await;
        let subgroups = match subgroup {
            1 => "off".into(),
            _ => format!("{}..{}", about.subgroup_min_size, about.subgroup_max_size),
        };
        let software = about.device_type == wgpu::DeviceType::Cpu;
        let info = BackendInfo {
            name: "webgpu",
            adapter: adapter_name.trim().to_owned(),
            software,
            synchronous: false,
            // The tiles of a prefill take software seconds to compile.
            short_prompt: if software { 8 } else { 0 },
            verify_rows: OWN,
            batch_rows: FEW,
            verify_after: VERIFY_AFTER,
            prompt_rows: if software { 128 } else { 512 },
            products: options.products,
            facts: vec![
                ("api", about.backend.to_string()),
                ("largest binding of weights", format!("{weights} bytes")),
                ("largest binding", format!("{binding} bytes")),
                ("largest buffer", format!("{} bytes", limits.max_buffer_size)),
                ("subgroups", subgroups),
                ("products of several rows", options.products.to_string()),
            ],
        };
        let tuning = options.tuning.unwrap_or_else(|| match info.software {
            true => Tuning::software(),
            false => Tuning::of_device(limits.max_compute_workgroup_storage_size as usize),
        });
        let shared = Shared {
            device,
            owned,
            queue,
            faults,
            counters: Counters::default(),
            limits: Limits { weights, binding, subgroup, products: options.products },
            tuning,
            uniform_align: u64::from(limits.min_uniform_buffer_offset_alignment).max(16),
            pipelines: RefCell::default(),
            pending: RefCell::default(),
            #[cfg(target_arch = "wasm32")]
            staging: Staging::default(),
            patch,
            reads: RefCell::default(),
            watcher: RefCell::default(),
            polls: Cell::new(0),
            codebooks: RefCell::default(),
        };
        WebGpu {
            info,
            shared: Rc::new(shared),
            storages: RefCell::default(),
            next: Cell::new(0),
            unflushed: Cell::new(0),
            done: Arc::default(),
            watched: Cell::new(0),
        }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Uploads bytes in pieces and submits them now and then.
    fn upload(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.shared.submit_step();
        for (i, piece) in bytes.chunks(UPLOAD_BYTES).enumerate() {
            self.shared.put(buffer, offset + (i * UPLOAD_BYTES) as u64, piece);
            count(&self.unflushed, piece.len() as u64);
            if self.unflushed.get() >= FLUSH_BYTES {
                self.unflushed.set(0);
                self.shared.queue.submit([]);
                count(&self.shared.counters.submits, 1);
                self.shared.poll()?;
            }
        }
        Ok(())
    }

    fn write_packed(&self, storage: &Storage, first: usize, bytes: &[u8]) -> Result<(), Error> {
        let name = &storage.desc.name;
        let DType::Packed(format) = storage.desc.dtype else {
            return Err(Error::Invalid(format!("{name} is not packed")));
        };
        let row = format.row_bytes(storage.desc.shape.cols())?;
        let rows = bytes.len() / row.max(1);
        if rows * row != bytes.len() || first.checked_add(rows).is_none_or(|e| e > storage.desc.shape.rows()) {
            return Err(Error::Invalid(format!(
                "cannot write {} bytes at row {first} of {name}, which is {}: whole rows of {row} bytes within it are \
                 needed",
                bytes.len(),
                storage.desc.shape
            )));
        }
        for (chunk, buffer) in storage.chunks.iter().zip(&storage.buffers) {
            let (from, to) = (first.max(chunk.first), (first + rows).min(chunk.first + chunk.rows));
            let Some(packing) = chunk.packing.filter(|_| from < to) else { continue };
            let part = &bytes[(from - first) * row..(to - first) * row];
            packing.repack(from - chunk.first, part, &mut |texel, bytes| {
                self.upload(buffer, u64::from(texel) * backend_api::format::TEXEL as u64, bytes)
            })?;
        }
        Ok(())
    }
}

fn unknown(id: StorageId) -> Error {
    Error::Invalid(format!("storage {} does not exist; it was destroyed, or belongs to another backend", id.0))
}

impl Backend for WebGpu {
    fn info(&self) -> &BackendInfo {
        &self.info
    }

    fn matchers(&self) -> &[Matcher] {
        MATCHERS
    }

    fn supports(&self, graph: &Graph, cover: &Cover) -> Result<(), Unsupported> {
        self.shared.lower(graph, cover).map(drop)
    }

    fn slot_size(&self, tensor: &Tensor) -> u64 {
        tensor.shape.len() as u64 * 4
    }

    fn storage_bytes(&self, desc: &StorageDesc) -> Result<u64, Error> {
        let chunks = chunks(desc.dtype, &desc.shape, &self.shared.limits)?;
        let dense = dense_bytes(desc)?;
        let bytes = |chunk: &Chunk| buffer_bytes(if chunk.packing.is_some() { chunk.bytes() } else { dense });
        Ok(chunks.iter().map(bytes).sum())
    }

    fn create(&self, desc: &StorageDesc) -> Result<StorageId, Error> {
        let chunks = chunks(desc.dtype, &desc.shape, &self.shared.limits)?;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let mut storage = Storage { desc: desc.clone(), chunks, buffers: Vec::new(), view: None };
        let dense = dense_bytes(desc)?;
        for chunk in &storage.chunks {
            let bytes = if chunk.packing.is_some() { chunk.bytes() } else { dense };
            match self.shared.buffer(&desc.name, bytes, usage) {
                Ok(buffer) => storage.buffers.push(buffer),
                Err(error) => {
                    storage.buffers.iter().for_each(|b| self.shared.free(b));
                    return Err(error);
                }
            }
        }
        let id = self.next.get();
        self.next.set(id.wrapping_add(1));
        self.storages.borrow_mut().insert(id, storage);
        Ok(StorageId(id))
    }

    fn view(&self, id: StorageId, first_row: usize, rows: usize) -> Result<StorageId, Error> {
        let mut storages = self.storages.borrow_mut();
        let whole = storages.get(&id.0).ok_or_else(|| unknown(id))?;
        let (begin, _) = whole.range(first_row, rows)?;
        let align = u64::from(self.shared.device.limits().min_storage_buffer_offset_alignment).max(1);
        let is_state = whole.chunks.iter().all(|chunk| chunk.packing.is_none()) && whole.desc.guard_rows == 0;
        if !is_state || !begin.is_multiple_of(align) {
            let name = &whole.desc.name;
            let why = format!("rows {first_row}+{rows} of {name} begin at byte {begin}, not at a multiple of {align}");
            return Err(Error::Invalid(format!("{why}; run one text after another")));
        }
        let mut dims: Vec<usize> = whole.desc.shape.dims().collect();
        dims.iter_mut().take(1).for_each(|dim| *dim = rows);
        let shape = Shape::new(&dims).map_err(|why| Error::Invalid(format!("{}: {why}", whole.desc.name)))?;
        let desc = StorageDesc { shape, ..whole.desc.clone() };
        let view = Storage { desc, chunks: whole.chunks.clone(), buffers: whole.buffers.clone(), view: Some(begin) };
        let id = self.next.get();
        self.next.set(id.wrapping_add(1));
        storages.insert(id, view);
        Ok(StorageId(id))
    }

    fn write(&self, id: StorageId, first_row: usize, bytes: &[u8]) -> Result<(), Error> {
        let storages = self.storages.borrow();
        let storage = storages.get(&id.0).ok_or_else(|| unknown(id))?;
        if matches!(storage.desc.dtype, DType::Packed(_)) {
            self.write_packed(storage, first_row, bytes)?;
        } else {
            let (_, row) = storage.rows()?;
            let rows = bytes.len() / row;
            if rows * row != bytes.len() {
                return Err(Error::Invalid(format!(
                    "{} bytes are not whole rows of {}, which take {row} bytes each",
                    bytes.len(),
                    storage.desc.name
                )));
            }
            let (offset, _) = storage.range(first_row, rows)?;
            let buffer = storage.buffers.first().ok_or_else(|| unknown(id))?;
            match storage.desc.dtype {
                DType::Coded(codec) => {
                    self.upload(buffer, offset, &codec.to_device(storage.desc.shape.cols(), bytes))?;
                }
                _ => self.upload(buffer, offset, bytes)?,
            }
        }
        self.shared.faults.check_patiently(&storage.desc.name, bytes.len() as u64)
    }

    fn read(&self, id: StorageId, first_row: usize, rows: usize) -> Result<ReadId, Error> {
        let storages = self.storages.borrow();
        let storage = storages.get(&id.0).ok_or_else(|| unknown(id))?;
        if matches!(storage.desc.dtype, DType::Packed(_)) {
            return Err(Error::Invalid(format!("{} is packed and cannot be read", storage.desc.name)));
        }
        let (offset, device) = storage.range(first_row, rows)?;
        let (_, row) = storage.rows()?;
        let cols = storage.desc.shape.cols();
        let coded = match storage.desc.dtype {
            DType::Coded(codec) => codec.device_words(cols).map(|_| (codec, cols)),
            _ => None,
        };
        let buffer = storage.buffers.first().ok_or_else(|| unknown(id))?;
        self.unflushed.set(0);
        let rows = Rows { device, host: rows as u64 * row as u64, coded };
        self.shared.reads.borrow_mut().begin(&self.shared, buffer, offset, rows)
    }

    fn try_read(&self, read: ReadId, out: &mut [u8]) -> Result<bool, Error> {
        self.shared.poll()?;
        self.shared.reads.borrow_mut().finish(&self.shared, read, out)
    }

    fn destroy(&self, id: StorageId) {
        let removed = self.storages.borrow_mut().remove(&id.0);
        if let Some(storage) = removed.filter(|storage| storage.view.is_none()) {
            storage.buffers.iter().for_each(|b| self.shared.free(b));
        }
    }

    fn compile_sequences(&self, plan: &Plan, sequences: &[&[StorageId]]) -> Result<Box<dyn Program>, Error> {
        let known = self.storages.borrow();
        let known = |id: &StorageId| known.get(&id.0).ok_or_else(|| unknown(*id));
        check_sequences(plan.graph(), sequences, |id, tensor| {
            let desc = &known(&id)?.desc;
            Ok(desc.shape == tensor.shape && desc.dtype == tensor.dtype)
        })?;
        let storages = |storages: &&[StorageId]| storages.iter().map(known).collect::<Result<Vec<&Storage>, Error>>();
        let bound = sequences.iter().map(storages).collect::<Result<Vec<_>, Error>>()?;
        let program: GpuProgram = program::compile(&self.shared, plan, &bound)?;
        Ok(Box::new(program))
    }

    fn ready(&self) -> Result<bool, Error> {
        self.shared.faults.check_patiently("a program", 0)?;
        Ok(self.shared.pipelines.borrow_mut().ready())
    }

    fn idle(&self) -> Result<bool, Error> {
        self.shared.submit_pending();
        self.shared.poll()?;
        let submitted = self.shared.counters.submits.get();
        let done = self.done.load(Ordering::Acquire);
        if done < submitted && done >= self.watched.get() {
            self.watched.set(submitted);
            let flag = self.done.clone();
            self.shared.queue.on_submitted_work_done(move || {
                flag.fetch_max(submitted, Ordering::Release);
            });
            self.shared.poll()?;
        }
        Ok(self.done.load(Ordering::Acquire) >= submitted)
    }

    fn set_watcher(&self, watcher: Option<backend_api::Watcher>) -> Result<(), Error> {
        let seen = |watcher: backend_api::Watcher| Rc::new(move |pass: Watched<'_>| pass.show(&watcher)) as Watcher;
        *self.shared.watcher.borrow_mut() = watcher.map(seen);
        Ok(())
    }

    fn stats(&self) -> Stats {
        let c = &self.shared.counters;
        Stats {
            dispatches: c.dispatches.get(),
            submits: c.submits.get(),
            objects: c.objects.get(),
            uploaded: c.uploaded.get(),
            read_back: c.read_back.get(),
            memory: c.memory.get(),
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        Tuning::ALL
    }

    fn tuning(&self) -> Vec<Tuned> {
        self.shared.tuning.values()
    }

    fn tune(&mut self, name: &str, value: usize) -> Result<(), Error> {
        let tuning = self.shared.tuning.with(name, value).map_err(Error::Invalid)?;
        let fresh = Rc::get_mut(&mut self.shared).filter(|_| self.storages.borrow().is_empty());
        fresh.ok_or_else(|| Error::Invalid("tuning comes before storages and programs".into()))?.tuning = tuning;
        Ok(())
    }
}

impl std::fmt::Debug for WebGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebGpu").field("info", &self.info).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.desc.name, self.bytes())
    }
}
