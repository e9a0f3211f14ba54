# A web server for tests: perl serve_files.pl FOLDER CUT PORT_FILE
# Serves the files of a folder, byte ranges included, and writes its port to a file, and to PORT_FILE.log what was asked for
# ("NAME FIRST_BYTE"). CUT: the first answer ends after so many
# bytes, as when a connection breaks; 0: none does. Perl without further modules is part of every Debian.
use strict;
use warnings;
use IO::Socket::INET;

my ($folder, $cut, $port_file) = @ARGV;
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "no socket: $!";
open(my $out, '>', "$port_file.tmp") or die;
print $out $server->sockport, "\n";
close $out;
rename "$port_file.tmp", $port_file;

while (my $client = $server->accept) {
  my ($path, $from) = ('', 0);
  while (my $line = <$client>) {
    $path = $1 if $line =~ m{^GET /([\w.-]+) };
    $from = $1 if $line =~ /^Range: bytes=(\d+)-/i;
    last if $line =~ /^\r?\n$/;
  }
  open(my $log, '>>', "$port_file.log") or die;
  print $log "$path $from\n";
  close $log;
  if (open(my $file, '<:raw', "$folder/$path")) {
    local $/;
    my $content = <$file>;
    my $size = length $content;
    if ($from >= $size && $from > 0) {
      print $client "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */$size\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    } else {
      my $rest = substr $content, $from;
      my $head = $from > 0 ? "206 Partial Content\r\nContent-Range: bytes $from-" . ($size - 1) . "/$size" : "200 OK";
      print $client "HTTP/1.1 $head\r\nContent-Length: " . length($rest) . "\r\nConnection: close\r\n\r\n";
      print $client $cut > 0 ? substr($rest, 0, $cut) : $rest;
      $cut = 0;
    }
  } else {
    print $client "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  }
  close $client;
}
