//! A windowless context by EGL, loaded at run time.

use backend_api::Error;
use khronos_egl as egl;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Instance = egl::DynamicInstance<egl::EGL1_5>;

const PLATFORM_SURFACELESS_MESA: egl::Enum = 0x31DD;
const PLATFORM_DEVICE_EXT: egl::Enum = 0x313F;
const MAX_DEVICES: usize = 16;

/// A context that can be made current on this thread. Displays are shared by the whole process and never terminated.
pub(super) struct Egl {
    instance: &'static Instance,
    display: egl::Display,
    context: egl::Context,
    /// Whether others must wait while it is used.
    takes_turns: Cell<bool>,
}

/// A thread's turn to use contexts. Mesa's llvmpipe (22.3) looks through what all contexts of a process draw, without a lock: a
/// context that draws meanwhile in another thread ends the program.
pub(super) struct Turn(Option<MutexGuard<'static, ()>>);

static TURN: Mutex<()> = Mutex::new(());

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    /// Waits for the turn, unless this thread has it.
    fn take() -> Turn {
        // The lock protects no data that a panic could leave half changed.
        Turn((!HAS_TURN.replace(true)).then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.0.is_some() {
            HAS_TURN.set(false);
        }
    }
}

fn absent(reason: impl std::fmt::Display) -> Error {
    Error::Absent {
        backend: "webgl",
        reason: format!("{reason}; install the packages libegl1 and libgl1-mesa-dri, or a driver with EGL"),
    }
}

fn instance() -> Result<&'static Instance, Error> {
    static LOADED: OnceLock<Result<Instance, String>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        // SAFETY: loads the system's EGL library, whose initialisers are sound to run.
        unsafe { Instance::load_required() }.map_err(|e| format!("libEGL.so.1 could not be loaded: {e}"))
    });
    loaded.as_ref().map_err(absent)
}

fn displays(egl: &'static Instance) -> Vec<egl::Display> {
    let attributes = [egl::ATTRIB_NONE];
    // SAFETY: both platforms take these native displays: the default one, or a device of the list below.
    let open = |platform, native| unsafe { egl.get_platform_display(platform, native, &attributes) }.ok();
    let mut found: Vec<egl::Display> = open(PLATFORM_SURFACELESS_MESA, egl::DEFAULT_DISPLAY).into_iter().collect();
    if let Some(query) = egl.get_proc_address("eglQueryDevicesEXT") {
        type QueryDevices = unsafe extern "system" fn(egl::Int, *mut *mut c_void, *mut egl::Int) -> egl::Boolean;
        let mut devices = [std::ptr::null_mut(); MAX_DEVICES];
        let mut count = 0;
        // SAFETY: the entry point has this signature; it writes at most MAX_DEVICES handles and their number.
        let ok = unsafe {
            let query: QueryDevices = std::mem::transmute(query);
            query(MAX_DEVICES as egl::Int, devices.as_mut_ptr(), &mut count)
        };
        if ok == egl::TRUE {
            let count = usize::try_from(count).unwrap_or(0).min(MAX_DEVICES);
            found.extend(devices[..count].iter().filter_map(|device| open(PLATFORM_DEVICE_EXT, *device)));
        }
    }
    found
}

impl Egl {
    /// Contexts on all displays, best guess first; they are opened as the iterator advances.
    ///
    /// *Errors*: no EGL library, or no display in it.
    pub(super) fn candidates() -> Result<impl Iterator<Item = Result<Egl, Error>>, Error> {
        let egl = instance()?;
        let displays = displays(egl);
        if displays.is_empty() {
            return Err(absent("EGL has neither a surfaceless nor a device platform"));
        }
        Ok(displays.into_iter().map(move |display| Egl::open(egl, display).map_err(absent)))
    }

    fn open(instance: &'static Instance, display: egl::Display) -> Result<Egl, egl::Error> {
        let _turn = Turn::take();
        instance.initialize(display)?;
        instance.bind_api(egl::OPENGL_ES_API)?;
        let wanted = [egl::SURFACE_TYPE, 0, egl::RENDERABLE_TYPE, egl::OPENGL_ES3_BIT, egl::NONE];
        let config = instance.choose_first_config(display, &wanted)?.ok_or(egl::Error::BadConfig)?;
        let version = [egl::CONTEXT_MAJOR_VERSION, 3, egl::CONTEXT_MINOR_VERSION, 0, egl::NONE];
        let context = instance.create_context(display, config, None, &version)?;
        let egl = Egl { instance, display, context, takes_turns: Cell::new(true) };
        egl.make_current()?;
        Ok(egl)
    }

    /// Makes the context current on this thread if it is not. It may be used until the result is dropped.
    ///
    /// *Errors*: it was lost.
    pub(super) fn enter(&self) -> Result<Option<Turn>, Error> {
        let turn = self.takes_turns.get().then(Turn::take);
        self.make_current().map_err(|e| Error::Lost(format!("the context cannot be made current: {e}")))?;
        Ok(turn)
    }

    /// Lets others go on while it is used: its driver is known to be good at it.
    pub(super) fn use_beside_others(&self) {
        self.takes_turns.set(false);
    }

    fn make_current(&self) -> Result<(), egl::Error> {
        if self.instance.get_current_context() == Some(self.context) {
            return Ok(());
        }
        self.instance.make_current(self.display, None, None, Some(self.context))
    }

    /// The address of a GL function.
    pub(super) fn address(&self, name: &str) -> *const c_void {
        self.instance.get_proc_address(name).map_or(std::ptr::null(), |f| f as *const c_void)
    }
}

impl Drop for Egl {
    fn drop(&mut self) {
        let _turn = Turn::take();
        if self.instance.get_current_context() == Some(self.context) {
            // Nothing can be done about a context that cannot be released.
            let _ = self.instance.make_current(self.display, None, None, None);
        }
        let _ = self.instance.destroy_context(self.display, self.context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    #[test]
    fn one_thread_at_a_time_has_its_turn() {
        let first = Turn::take();
        drop(Turn::take());
        let (had, waits) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _turn = Turn::take();
                had.send(()).unwrap();
            });
            assert_eq!(waits.recv_timeout(Duration::from_millis(100)), Err(RecvTimeoutError::Timeout));
            drop(first);
            waits.recv().unwrap();
        });
        assert!(!HAS_TURN.get());
    }

    #[test]
    fn software_contexts_take_turns() {
        if std::env::var("ANYGPU_SKIP").is_ok_and(|skip| skip.split(',').any(|name| name.trim() == "webgl")) {
            return println!("SKIPPED: ANYGPU_SKIP names webgl");
        }
        let gl = super::super::Gl::open(true).unwrap();
        assert!(!HAS_TURN.get());
        let entered = gl.enter().unwrap();
        assert_eq!(HAS_TURN.get(), gl.software());
        drop(entered);
        assert!(!HAS_TURN.get());
    }
}
