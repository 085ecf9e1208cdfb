//! The window: above, the story and the candidates of its newest token; below, the result of each pass.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use anygpu::native::block_on;
use anygpu::{EngineError, ModelError};
use anyhow::{Context as _, Result};
use backend_api::Error;
use eframe::egui::text::LayoutJob;
use eframe::egui::{
    self, Align2, CentralPanel, Color32, ColorImage, FontId, Panel, Rect, RichText, ScrollArea, Sense, TextFormat,
    TextureId, Ui, ViewportCommand, vec2,
};
use eframe::{App, CreationContext, Frame};

use crate::board::Board;
use crate::story::{Story, Told};
use crate::{Args, Backend, gl, gpu, report, tiles};

pub const TEXT: Color32 = Color32::from_gray(225);
pub const FAINT: Color32 = Color32::from_gray(150);
const NEW: Color32 = Color32::from_rgb(255, 180, 80);
const BACKGROUND: Color32 = Color32::from_rgb(26, 28, 33);

/// State of the window.
enum State {
    Writing,
    /// The story has ended, and its last picture must be drawn before the screenshot.
    Written,
    Saving(Arc<Mutex<Option<Arc<ColorImage>>>>),
    Over,
}

pub struct Window {
    args: Args,
    story: Option<Story>,
    told: Rc<RefCell<Told>>,
    board: Rc<RefCell<Board>>,
    picture: Picture,
    /// Error that ended the story.
    failure: Option<String>,
    state: State,
    /// Positions of the tiles in the last frame.
    drawn: Vec<Rect>,
    tell: Sender<Result<()>>,
}

/// The picture that passes are painted in, as egui draws it.
enum Picture {
    None,
    /// A texture that is not registered with egui yet.
    Texture(eframe::glow::Texture),
    Known(TextureId),
}

type Opened = (Box<dyn anygpu::Backend>, Picture, Rc<RefCell<Board>>);

fn open(args: &Args, context: &CreationContext<'_>) -> Result<Opened> {
    match args.backend {
        Backend::Webgpu => {
            let state = context.wgpu_render_state.as_ref().context("the window is not drawn by wgpu")?;
            let (backend, picture, board) = block_on(gpu::open(state))?;
            Ok((Box::new(backend), Picture::Known(picture), board))
        }
        Backend::Webgl => {
            let context = context.gl.clone().context("the window is not drawn by glow")?;
            let (backend, picture, board) = gl::open(context)?;
            Ok((Box::new(backend), Picture::Texture(picture), board))
        }
    }
}

impl Window {
    pub fn new(args: Args, context: &CreationContext<'_>, tell: Sender<Result<()>>) -> Window {
        context.egui_ctx.set_visuals(egui::Visuals::dark());
        let mut window = Window {
            story: None,
            told: Rc::default(),
            board: Rc::default(),
            picture: Picture::None,
            failure: None,
            state: State::Writing,
            drawn: Vec::new(),
            tell,
            args,
        };
        match open(&window.args, context) {
            Ok((backend, picture, board)) => {
                let story = Story::new(&window.args, backend);
                (window.told, window.board, window.picture) = (story.told.clone(), board, picture);
                window.story = Some(story);
            }
            Err(error) => window.fail(error),
        }
        window
    }

    /// Shows an error in the window. When the window closes, `main` reports it as well.
    fn fail(&mut self, error: anyhow::Error) {
        if is_lost(&error) {
            // The lost device also draws the window, and egui panics without it.
            eprintln!("Error: the window's device is gone, so that it closes: {error:#}");
            std::process::exit(1);
        }
        (self.failure, self.story, self.state) = (Some(format!("{error:#}")), None, State::Over);
        // The engine's end has removed the picture.
        self.picture = Picture::None;
        // The receiver waits until the window closes.
        let _ = self.tell.send(Err(error));
    }

    /// Takes the screenshot and closes the window, if that is requested and the story has ended.
    fn finish(&mut self, context: &egui::Context) {
        match &self.state {
            State::Writing if self.story.as_ref().is_some_and(Story::is_written) => {
                self.state = if self.args.screenshot.is_some() { State::Written } else { State::Over };
            }
            State::Written => {
                let (image, repaint) = (Arc::new(Mutex::new(None)), context.clone());
                let taken = image.clone();
                context.send_viewport_cmd(ViewportCommand::Screenshot(egui::ScreenshotCallback::new(move |shot| {
                    if let Ok(mut taken) = taken.lock() {
                        *taken = Some(shot);
                    }
                    repaint.request_repaint();
                })));
                self.state = State::Saving(image);
            }
            State::Saving(image) => {
                let image = image.lock().ok().and_then(|mut image| image.take());
                if let (Some(image), Some(path)) = (image, &self.args.screenshot) {
                    let (told, board) = (self.told.borrow(), self.board.borrow());
                    let shown = (&*board, &self.drawn[..], context.pixels_per_point());
                    // The receiver waits until the window closes.
                    let _ = self.tell.send(report::save(&image, path, &told, shown));
                    self.state = State::Over;
                }
            }
            State::Over if self.args.screenshot.is_some() => context.send_viewport_cmd(ViewportCommand::Close),
            State::Writing | State::Over => {}
        }
    }
}

impl App for Window {
    fn logic(&mut self, context: &egui::Context, frame: &mut Frame) {
        if let Picture::Texture(texture) = self.picture {
            self.picture = Picture::Known(frame.register_native_glow_texture(texture));
        }
        if let Some(Err(error)) = self.story.as_mut().and_then(Story::advance) {
            self.fail(error);
        }
        self.finish(context);
        if !matches!(self.state, State::Over) || self.args.screenshot.is_some() {
            context.request_repaint();
        }
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut Frame) {
        let frame = egui::Frame::new().fill(BACKGROUND).inner_margin(16.0);
        Panel::top("above").frame(frame).exact_size(196.0).show(ui, |ui| {
            let right = Panel::right("candidates").frame(egui::Frame::NONE).exact_size(260.0);
            right.show_separator_line(false).show(ui, |ui| self.candidates(ui));
            CentralPanel::default().frame(egui::Frame::NONE).show(ui, |ui| self.tale(ui));
        });
        CentralPanel::default().frame(frame).show(ui, |ui| {
            if let Picture::Known(picture) = self.picture {
                self.drawn = tiles::show(ui, &self.board.borrow(), picture, self.args.backend);
            }
        });
    }

    /// Drops the engine while its device still exists.
    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        if let Some(story) = &mut self.story {
            story.end();
        }
    }
}

impl Window {
    fn tale(&self, ui: &mut Ui) {
        let told = self.told.borrow();
        let name = match self.args.backend {
            Backend::Webgpu => "WebGPU",
            Backend::Webgl => "WebGL2",
        };
        let model = self.args.model.as_ref().map_or("gab".into(), |path| path.display().to_string());
        ui.label(RichText::new(format!("{model} on {name}: {}", told.device)).color(FAINT).size(13.0));
        ui.add_space(6.0);
        if let Some(failure) = &self.failure {
            ui.label(RichText::new(format!("The story ends here: {failure}")).color(Color32::LIGHT_RED).size(16.0));
        }
        let format = |color| TextFormat { font_id: FontId::proportional(18.0), color, ..Default::default() };
        let mut job = LayoutJob::default();
        job.append(&self.args.prompt, 0.0, format(FAINT));
        let newest = told.pieces.len().saturating_sub(1);
        for (at, piece) in told.pieces.iter().enumerate() {
            job.append(piece, 0.0, format(if at == newest { NEW } else { TEXT }));
        }
        ScrollArea::vertical().stick_to_bottom(true).auto_shrink(false).show(ui, |ui| ui.label(job));
    }

    fn candidates(&self, ui: &mut Ui) {
        ui.label(RichText::new("What might have come, and how likely").color(FAINT).size(13.0));
        ui.add_space(6.0);
        for one in &self.told.borrow().candidates {
            let (response, painter) = ui.allocate_painter(vec2(ui.available_width(), 20.0), Sense::hover());
            let area = response.rect;
            let color = if one.is_taken { NEW } else { TEXT };
            let shown = one.text.replace(' ', "·").replace('\n', "↵");
            painter.text(area.left_top(), Align2::LEFT_TOP, shown, FontId::monospace(14.0), color);
            let percent = if one.chance < 0.0005 { "< 0.1 %".into() } else { format!("{:.1} %", 100.0 * one.chance) };
            painter.text(area.right_top(), Align2::RIGHT_TOP, percent, FontId::proportional(13.0), FAINT);
            let bar = Rect::from_min_size(area.left_top() + vec2(110.0, 6.0), vec2(area.width() - 170.0, 6.0));
            painter.rect_filled(bar, 3.0, Color32::from_gray(48));
            let filled = Rect::from_min_size(bar.min, vec2(bar.width() * one.chance.clamp(0.0, 1.0), bar.height()));
            painter.rect_filled(filled, 3.0, color);
        }
    }
}

/// Returns whether an error says that the device was lost.
fn is_lost(error: &anyhow::Error) -> bool {
    let lost = |error: &EngineError| matches!(error, EngineError::Model(ModelError::Backend(Error::Lost(_))));
    error.downcast_ref().is_some_and(lost)
}
