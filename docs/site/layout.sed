s/type="pages" visible="yes" title=""/type="pages" visible="yes" title="Guides"/
s/type="modules" visible="yes" title=""/type="modules" visible="yes" title="API by topic"/
s/type="classes" visible="yes" title=""/type="classes" visible="yes" title="Classes"/
s/type="namespaces" visible="yes"/type="namespaces" visible="no"/
s/type="examples" visible="yes"/type="examples" visible="no"/
