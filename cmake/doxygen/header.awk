# A header as Doxygen shall read it, line by line the same: what depends on the precision is in `capstan`, as callers write it,
# and the comment at the top of the file describes the file. It follows at the end, where it moves no line; its indented lines
# are shown as they are.
{ sub(/^namespace capstan::CAPSTAN_PRECISION/, "namespace capstan") }
!body && /^\/\// {
  indented = /^\/\/   /
  if (indented != verbatim) about = about "\n/// " (indented ? "@code{.unparsed}" : "@endcode")
  verbatim = indented
  about = about "\n/" $0
  print ""
  next
}
{ body = 1; print }
END { if (about) print "/// @file" about (verbatim ? "\n/// @endcode" : "") }
