# Prints what GitHub would not render as it was meant, one place per line, and fails if there is any:
#   perl check_documents.pl FILE.md...      from the folder that the names are relative to
# Each file is parsed by cmark-gfm, so what is looked at is what a reader sees. GitHub's formulas ($$) are no part of that parser.
use strict;
use warnings;
use utf8;
use open qw(:std :utf8);
use File::Basename 'dirname';

my $found = 0;

sub tell_place {
  my ($file, $line, $what) = @_;
  print "$file:$line: $what\n";
  $found++;
}

sub plain {
  my ($text) = @_;
  $text =~ s/&lt;/</g;
  $text =~ s/&gt;/>/g;
  $text =~ s/&quot;/"/g;
  $text =~ s/&amp;/&/g;
  return $text;
}

# The nodes of a file, in order, each with its depth, its first and last line, and its literal text.
sub nodes {
  my ($file) = @_;
  open my $xml, '-|', 'cmark-gfm', '-e', 'table', '-e', 'autolink', '-e', 'strikethrough', '-t', 'xml', '--sourcepos', $file
    or die "cmark-gfm: $!";
  my $text = do { local $/; <$xml> };
  close $xml or die "cmark-gfm fails for $file";
  my @nodes;
  my @open;
  while ($text =~ m{<(/?)(\w+)([^<>]*?)(/?)>(?:([^<]+)(?=</\2>))?}g) {
    my ($closes, $name, $attributes, $empty, $literal) = ($1, $2, $3, $4, $5);
    if ($closes) { pop @open; next }
    my %node = (name => $name, depth => scalar @open, literal => plain($literal // ''), parents => join(' ', @open));
    ($node{first}, $node{last}) = ($1, $2) if $attributes =~ /sourcepos="(\d+):\d+-(\d+):/;
    $node{destination} = plain($1) if $attributes =~ /destination="([^"]*)"/;
    push @nodes, \%node;
    push @open, $name unless $empty;
  }
  return @nodes;
}

# What GitHub calls the headings of a file in addresses.
my %anchors;

sub anchors_of {
  my ($file) = @_;
  return $anchors{$file} //= do {
    my (%names, %count, $heading);
    my $end = sub {
      return unless defined $heading;
      (my $name = lc $heading) =~ s/[^\w\- ]//g;
      $name =~ tr/ /-/;
      $names{$count{$name} ? "$name-$count{$name}" : $name} = 1;
      $count{$name}++;
      undef $heading;
    };
    for my $node (nodes($file)) {
      if ($node->{parents} !~ /\bheading\b/) { $end->() }
      if ($node->{name} eq 'heading') { $heading = '' }
      elsif (defined $heading) { $heading .= $node->{literal} }
    }
    $end->();
    \%names;
  };
}

sub check_link {
  my ($file, $line, $link) = @_;
  return if $link =~ m{^(https?|mailto):};
  my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
  my $target = $path eq '' ? $file : dirname($file) . "/$path";
  if (!-e $target) { return tell_place($file, $line, "there is no $path") }
  if (defined $anchor && !($target =~ /\.md$/ && anchors_of($target)->{$anchor})) {
    tell_place($file, $line, "$target has no heading #$anchor");
  }
}

# The formulas: those of GitHub have a line with $$ alone before and after them, and are one paragraph.
sub check_formulas {
  my ($file, $lines, $nodes) = @_;
  my %code;
  for my $node (grep { $_->{name} eq 'code_block' } @$nodes) { $code{$_} = 1 for $node->{first} .. $node->{last} }
  my @marks = grep { !$code{$_} && $lines->[$_ - 1] =~ /^\s*\$\$\s*$/ } 1 .. @$lines;
  my %formula;
  while (my ($first, $last) = splice @marks, 0, 2) {
    if (!defined $last) { $formula{$first} = 1; tell_place($file, $first, 'the formula that begins here does not end'); last }
    $formula{$_} = 1 for $first .. $last;
    tell_place($file, $first, 'the formula is not a paragraph of its own')
      unless grep { $_->{name} eq 'paragraph' && $_->{first} == $first && $_->{last} == $last } @$nodes;
    my $text = join "\n", @$lines[$first .. $last - 2];
    (my $braces = $text) =~ s/\\[{}]//g;
    tell_place($file, $first, 'braces of the formula are not balanced') if ($braces =~ tr/{//) != ($braces =~ tr/}//);
    for my $pair (['\\\\left(?![a-z])', '\\\\right(?![a-z])'], ['\\\\begin\\{', '\\\\end\\{']) {
      my ($left, $right) = map { my $count = () = $text =~ /$_/g; $count } @$pair;
      tell_place($file, $first, "the formula has $left $pair->[0] and $right $pair->[1]") if $left != $right;
    }
    tell_place($file, $first, 'the formula has a $ in it') if $text =~ /\$/;
  }
  my ($paragraph, $dollars) = (undef, 0);
  my $end = sub {
    tell_place($file, $paragraph->{first}, 'a $ that opens no formula, or closes none') if $paragraph && $dollars % 2;
    $dollars = 0;
  };
  for my $node (@$nodes) {
    if ($node->{name} =~ /^(paragraph|heading|table_cell)$/) { $end->(); $paragraph = $node }
    next if $node->{name} ne 'text' || $formula{$paragraph->{first}};
    tell_place($file, $paragraph->{first}, '$$ is not on a line of its own') if $node->{literal} =~ /\$\$/ && $node->{literal} !~ /^\s*\$\$\s*$/;
    $dollars += $node->{literal} =~ tr/$//;
  }
  $end->();
}

sub check {
  my ($file) = @_;
  open my $source, '<', $file or die "$file: $!";
  chomp(my @lines = <$source>);
  my @nodes = nodes($file);
  my ($line, $before, $previous) = (1, '', undef);
  for my $node (@nodes) {
    my $name = $node->{name};
    $line = $node->{first} // $line;
    if ($name eq 'list' && $node->{depth} == 1 && $previous && $previous->{name} eq 'paragraph' && $previous->{last} + 1 == $node->{first}) {
      tell_place($file, $line, 'a list that interrupts a paragraph: it needs a blank line, or the line no mark');
    }
    if ($name eq 'text' && $node->{literal} =~ /^\s*\|/ && $node->{parents} !~ /table/) {
      tell_place($file, $line, 'a row outside of a table');
    }
    if ($name eq 'text' && $before eq 'softbreak' && $node->{literal} =~ /^\d+[.)](\s|$)/) {
      tell_place($file, $line, "a line of a paragraph looks like an item: $node->{literal}");
    }
    if ($name eq 'text' && $node->{literal} =~ /[.:;,] - \S/) {
      tell_place($file, $line, "items of a list joined to a paragraph: $node->{literal}");
    }
    if (($name eq 'html_inline' || $name eq 'html_block') && $node->{literal} !~ /^<(br|!--)/) {
      tell_place($file, $line, "HTML, which is not shown: $node->{literal}");
    }
    if ($name eq 'table') {
      my $columns;
      for my $row ($node->{first} .. $node->{last}) {
        (my $cells = $lines[$row - 1]) =~ s/\\\|//g;
        my $bars = $cells =~ tr/|//;
        $columns //= $bars;
        tell_place($file, $row, 'a row with ' . ($bars - 1) . ' cells in a table of ' . ($columns - 1)) if $bars != $columns;
      }
    }
    if ($name eq 'link' || $name eq 'image') { check_link($file, $line, $node->{destination}) }
    if ($node->{depth} == 1) { $previous = $node }
    $before = $name;
  }
  check_formulas($file, \@lines, \@nodes);
}

check($_) for @ARGV;
exit($found ? 1 : 0);
