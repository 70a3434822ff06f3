//! Colours that everybody can tell apart.

/// A colour, red, green and blue from 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    pub const BLACK: Self = Self(0, 0, 0);
    /// For what stays in the background: rules, limits.
    pub const GREY: Self = Self(110, 110, 110);
    pub const WHITE: Self = Self(255, 255, 255);
    pub const BLUE: Self = Self(0, 114, 178);
    pub const VERMILION: Self = Self(213, 94, 0);
    /// Bluish green.
    pub const GREEN: Self = Self(0, 158, 115);
    /// Reddish purple.
    pub const PURPLE: Self = Self(204, 121, 167);
    /// Sky blue.
    pub const SKY: Self = Self(86, 180, 233);
    pub const ORANGE: Self = Self(230, 159, 0);
    /// Yellow; weak on white, so the palette has it last.
    pub const YELLOW: Self = Self(240, 228, 66);

    /// Colour number `i` of [`PALETTE`], from the beginning again after the last.
    #[must_use]
    pub fn of_palette(i: usize) -> Self {
        PALETTE
            .get(i % PALETTE.len())
            .copied()
            .unwrap_or(Self::BLACK)
    }

    /// True if black letters are easier to read on it than white ones (relative luminance by ITU-R
    /// BT.601).
    #[must_use]
    pub fn is_light(self) -> bool {
        let Self(red, green, blue) = self;
        299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) > 140_000
    }
}

/// The colours of Okabe and Ito (*Color Universal Design*, 2008), the strong ones on white first.
/// They stay apart for readers who see red and green alike, and in print.
pub const PALETTE: [Colour; 8] = [
    Colour::BLUE,
    Colour::VERMILION,
    Colour::GREEN,
    Colour::BLACK,
    Colour::PURPLE,
    Colour::SKY,
    Colour::ORANGE,
    Colour::YELLOW,
];
