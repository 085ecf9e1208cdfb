//! The window: the story above, what each pass left below it, and beside that what might have come.

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
    self, Align2, CentralPanel, Color32, ColorImage, FontId, Panel, Pos2, Rect, RichText, ScrollArea, Sense, Stroke,
    StrokeKind, TextFormat, TextureId, Ui, ViewportCommand, pos2, vec2,
};
use eframe::{App, CreationContext, Frame};
use serde_json::json;

use crate::board::{Board, SIDE, Tile};
use crate::story::{Story, Told};
use crate::{Args, Backend, colour, gl, gpu};

const TEXT: Color32 = Color32::from_gray(225);
const FAINT: Color32 = Color32::from_gray(150);
const NEW: Color32 = Color32::from_rgb(255, 180, 80);
const BACKGROUND: Color32 = Color32::from_rgb(26, 28, 33);
/// Points of a label's line, between tiles, and before them.
const LABEL: f32 = 16.0;
const GAP: f32 = 12.0;
const MARGIN: f32 = 66.0;

/// What the window does.
enum State {
    Writing,
    /// The newest picture is still to be drawn; then it is saved.
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
    /// Why there is no story any more, in words.
    failure: Option<String>,
    state: State,
    /// Where the tiles were drawn last.
    drawn: Vec<Rect>,
    tell: Sender<Result<()>>,
}

/// The picture that passes are painted in, as egui draws it.
enum Picture {
    None,
    /// A texture that egui is still to be told of.
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

    /// Tells why there is no story, in the window, and when it closes on the standard error.
    fn fail(&mut self, error: anyhow::Error) {
        if is_lost(&error) {
            // The window is drawn with the same device, and egui panics without it.
            eprintln!("Error: the window's device is gone, so that it closes: {error:#}");
            std::process::exit(1);
        }
        (self.failure, self.story, self.state) = (Some(format!("{error:#}")), None, State::Over);
        // Who listens waits for the window to close.
        let _ = self.tell.send(Err(error));
    }

    /// Saves what is seen, and says what it is.
    fn save_as_seen(&self, image: &ColorImage) -> Result<()> {
        let Some(path) = &self.args.screenshot else { return Ok(()) };
        let bytes: Vec<u8> = image.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
        let [width, height] = image.size.map(|side| side as u32);
        image::save_buffer(path, &bytes, width, height, image::ColorType::Rgb8)
            .with_context(|| format!("cannot save the screenshot {}", path.display()))?;
        let (told, board) = (self.told.borrow(), self.board.borrow());
        let tile = |(tile, at): (&Tile, &Rect)| {
            let pixels = [at.min.x, at.min.y, at.width(), at.height()].map(f32::round);
            json!({
                "label": tile.label, "block": tile.block, "kernel": tile.kernel, "place": tile.place,
                "rows": tile.made.rows, "cols": tile.made.cols, "first": tile.first, "stride": tile.stride,
                "texels": [tile.area[2], tile.area[3]],
                "pixels": pixels,
            })
        };
        let candidates = told.candidates.iter().map(|one| json!([one.text, one.chance, one.is_taken]));
        let report = json!({
            "device": told.device,
            "prompt": self.args.prompt,
            "text": told.pieces.concat(),
            "tokens": told.tokens,
            "candidates": candidates.collect::<Vec<_>>(),
            "position": board.position,
            "tiles": board.tiles.iter().zip(&self.drawn).map(tile).collect::<Vec<_>>(),
        });
        println!("{report}");
        Ok(())
    }

    /// What is to be done when the story is there.
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
                if let Some(image) = image {
                    // Who listens waits for the window to close.
                    let _ = self.tell.send(self.save_as_seen(&image));
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
        CentralPanel::default().frame(frame).show(ui, |ui| self.passes(ui));
    }

    /// The engine goes while its device is there.
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

    fn passes(&mut self, ui: &mut Ui) {
        let board = self.board.borrow();
        let Picture::Known(picture) = self.picture else { return };
        ui.label(RichText::new("What each pass leaves on the GPU").color(TEXT).size(15.0));
        let (holders, attention) = match self.args.backend {
            Backend::Webgpu => ("buffers", " Scores of attention never leave its kernel here."),
            Backend::Webgl => ("textures", ""),
        };
        let how = format!(
            "A dot is a number, a line a block of the model. Letters name the {holders}, which the passes use in turn.\
             {attention}"
        );
        ui.label(RichText::new(how).color(FAINT).size(12.0));
        legend(ui);
        self.drawn.clear();
        let drawn = &mut self.drawn;
        ScrollArea::both().auto_shrink(false).show(ui, |ui| {
            let origin = ui.cursor().min.round();
            let (mut at, mut right, mut bottom) = (origin + vec2(MARGIN, 0.0), origin.x, origin.y);
            for (index, tile) in board.tiles.iter().enumerate() {
                let before = index.checked_sub(1).and_then(|before| board.tiles.get(before));
                if before.is_none_or(|before| before.block != tile.block) {
                    at = pos2(origin.x + MARGIN, bottom);
                    let outside = || if before.is_none() { "before".into() } else { "after".into() };
                    let name = tile.block.map_or_else(outside, |block| format!("block {block}"));
                    let left = pos2(origin.x, at.y + LABEL);
                    ui.painter().text(left, Align2::LEFT_TOP, name, FontId::proportional(13.0), TEXT);
                }
                let dots = draw(ui, picture, tile, at);
                at.x = dots.right() + GAP;
                (right, bottom) = (right.max(dots.right()), bottom.max(dots.bottom() + GAP));
                drawn.push(dots);
            }
            ui.allocate_space(vec2(right - origin.x, bottom - origin.y));
        });
    }
}

/// Draws a tile with its label; gives where its dots are.
fn draw(ui: &Ui, picture: TextureId, tile: &Tile, at: Pos2) -> Rect {
    let letter = char::from(b'A' + (tile.place % 26) as u8);
    let label = format!("{} · {letter}", tile.label);
    ui.painter().text(at, Align2::LEFT_TOP, label, FontId::proportional(11.0), FAINT);
    let ([_, _, wide, high], [across, down]) = (tile.area, tile.dot);
    let dots = Rect::from_min_size(at + vec2(0.0, LABEL), vec2((wide * across) as f32, (high * down) as f32));
    let [x, y, width, height] = tile.area.map(|texels| texels as f32 / SIDE as f32);
    let part = Rect::from_min_size(pos2(x, y), vec2(width, height));
    ui.painter().image(picture, dots, part, Color32::WHITE);
    ui.painter().rect_stroke(dots, 0.0, Stroke::new(1.0, Color32::from_gray(58)), StrokeKind::Outside);
    dots
}

/// Whether a device was lost.
fn is_lost(error: &anyhow::Error) -> bool {
    let lost = |error: &EngineError| matches!(error, EngineError::Model(ModelError::Backend(Error::Lost(_))));
    error.downcast_ref().is_some_and(lost)
}

/// What colours stand for.
fn legend(ui: &mut Ui) {
    let (response, painter) = ui.allocate_painter(vec2(400.0, 34.0), Sense::hover());
    let bar = Rect::from_min_size((response.rect.min + vec2(0.0, 4.0)).round(), vec2(400.0, 8.0));
    let scale = |t: f32| t.signum() * (10001f32.powf(t.abs()) - 1.0) / 100.0;
    for step in 0..200 {
        let value = scale((step as f32 + 0.5) / 100.0 - 1.0);
        let dot = Rect::from_min_size(bar.min + vec2(2.0 * step as f32, 0.0), vec2(2.0, bar.height()));
        painter.rect_filled(dot, 0.0, colour::of(value));
    }
    for (text, t) in [("−100", -1.0), ("−10", -0.75), ("−1", -0.5), ("0", 0.0), ("1", 0.5), ("10", 0.75), ("100", 1.0)]
    {
        let align = match t {
            -1.0 => Align2::LEFT_TOP,
            1.0 => Align2::RIGHT_TOP,
            _ => Align2::CENTER_TOP,
        };
        let at = pos2(bar.center().x + t * bar.width() / 2.0, bar.bottom() + 2.0);
        painter.text(at, align, text, FontId::proportional(11.0), FAINT);
    }
}
