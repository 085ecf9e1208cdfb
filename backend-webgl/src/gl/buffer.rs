//! Buffers, and the fences that say when they are filled.

use super::Gl;
#[cfg(not(target_arch = "wasm32"))]
use super::driver;
use backend_api::Error;
use glow::HasContext;
use std::rc::Rc;

/// A buffer.
pub(crate) struct Buffer {
    gl: Rc<Gl>,
    pub(super) raw: glow::Buffer,
    target: u32,
    pub(crate) bytes: usize,
}

/// A fence in the command stream.
pub(crate) struct Fence {
    gl: Rc<Gl>,
    pub(super) raw: glow::Fence,
}

impl Gl {
    fn buffer(self: &Rc<Self>, target: u32, usage: u32, bytes: usize, data: Option<&[u8]>) -> Result<Buffer, Error> {
        let size =
            i32::try_from(bytes).map_err(|_| Error::Invalid(format!("a buffer of {bytes} bytes is too large")))?;
        // SAFETY: the slice, if any, has `bytes` bytes.
        let raw = unsafe {
            let raw = self.made("buffer", self.raw.create_buffer())?;
            self.raw.bind_buffer(target, Some(raw));
            match data {
                Some(data) => self.raw.buffer_data_u8_slice(target, data, usage),
                None => self.raw.buffer_data_size(target, size, usage),
            }
            // A bound pixel buffer would redirect later reads and uploads.
            self.raw.bind_buffer(target, None);
            raw
        };
        self.count(|s| {
            s.objects += 1;
            s.memory += bytes as u64;
            s.uploaded += data.map_or(0, |d| d.len() as u64);
        });
        let buffer = Buffer { gl: self.clone(), raw, target, bytes };
        self.check("buffer", bytes as u64)?;
        Ok(buffer)
    }

    /// A uniform buffer with fixed content.
    pub(crate) fn uniforms(self: &Rc<Self>, data: &[u8]) -> Result<Buffer, Error> {
        self.buffer(glow::UNIFORM_BUFFER, glow::STATIC_DRAW, data.len(), Some(data))
    }

    /// A uniform buffer that is rewritten every step.
    pub(crate) fn step_uniforms(self: &Rc<Self>, bytes: usize) -> Result<Buffer, Error> {
        self.buffer(glow::UNIFORM_BUFFER, glow::DYNAMIC_DRAW, bytes, None)
    }

    /// A buffer for pixels that are read back.
    pub(crate) fn pixel_buffer(self: &Rc<Self>, bytes: usize) -> Result<Buffer, Error> {
        self.buffer(glow::PIXEL_PACK_BUFFER, glow::STREAM_READ, bytes, None)
    }

    /// Puts a fence after everything so far.
    pub(crate) fn fence(self: &Rc<Self>) -> Result<Fence, Error> {
        // SAFETY: plain object creation.
        let raw = unsafe { self.raw.fence_sync(glow::SYNC_GPU_COMMANDS_COMPLETE, 0) }
            .map_err(|why| Error::Lost(format!("no fence could be made: {why}")))?;
        Ok(Fence { gl: self.clone(), raw })
    }
}

impl Buffer {
    /// Rewrites the beginning.
    pub(crate) fn update(&self, data: &[u8]) {
        let data = &data[..data.len().min(self.bytes)];
        // SAFETY: the data fits the buffer.
        unsafe {
            self.gl.raw.bind_buffer(self.target, Some(self.raw));
            self.gl.raw.buffer_sub_data_u8_slice(self.target, 0, data);
        }
        self.gl.count(|s| s.uploaded += data.len() as u64);
    }

    /// Hands the first `bytes` bytes to `take`. The caller has seen the fence after the copy into the buffer pass.
    pub(crate) fn download(&self, bytes: usize, take: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let bytes = bytes.min(self.bytes);
        let raw = &self.gl.raw;
        // SAFETY: the mapped range lies in the buffer and is unmapped before this returns.
        unsafe {
            raw.bind_buffer(self.target, Some(self.raw));
            #[cfg(not(target_arch = "wasm32"))]
            {
                let at = raw.map_buffer_range(self.target, 0, bytes as i32, glow::MAP_READ_BIT);
                if at.is_null() {
                    raw.bind_buffer(self.target, None);
                    self.gl.check("mapping a read", bytes as u64)?;
                    return Err(driver("mapping a read")("no address".into()));
                }
                take(std::slice::from_raw_parts(at, bytes));
                raw.unmap_buffer(self.target);
            }
            #[cfg(target_arch = "wasm32")]
            {
                let mut copy = vec![0u8; bytes];
                raw.get_buffer_sub_data(self.target, 0, &mut copy);
                take(&copy);
            }
            raw.bind_buffer(self.target, None);
        }
        Ok(())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = self.bytes as u64;
        self.gl.count(|s| s.memory -= bytes);
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_buffer(self.raw) };
        }
    }
}

impl Fence {
    /// Whether the device has passed it; never waits.
    ///
    /// *Errors*: device lost.
    pub(crate) fn passed(&self) -> Result<bool, Error> {
        // SAFETY: a query with a timeout of zero.
        match unsafe { self.gl.raw.client_wait_sync(self.raw, 0, 0) } {
            glow::ALREADY_SIGNALED | glow::CONDITION_SATISFIED => Ok(true),
            glow::TIMEOUT_EXPIRED => Ok(false),
            _ => {
                self.gl.check("waiting for the device", 0)?;
                Err(Error::Lost("a fence failed".into()))
            }
        }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if let Ok(_entered) = self.gl.enter() {
            // SAFETY: the object is ours.
            unsafe { self.gl.raw.delete_sync(self.raw) };
        }
    }
}
